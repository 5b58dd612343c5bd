"""Model `auto`: which models it is made of, and which of them answers."""

import numpy as np
import pandas as pd
import pytest

from knobscope.statistics.arrays import Floats
from knobscope.statistics.blend import Blend
from knobscope.statistics.design import FullGrid, Settings
from knobscope.statistics.models import DECIDING, make_models
from knobscope.statistics.models.anova import Anova
from knobscope.statistics.models.forest import ExtraTrees
from knobscope.statistics.models.gaussian import GaussianProcess
from knobscope.statistics.stopping import Runs, Stop, decide_stop

LEVELS = {"a": list(range(12)), "b": list(range(12)), "c": [0, 1, 2, 3], "d": [0, 1]}


def draw(rows: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    return pd.DataFrame({name: rng.choice(levels, rows) for name, levels in LEVELS.items()})


def encode(table: pd.DataFrame) -> Settings:
    return Settings.from_frame(table, list(LEVELS), LEVELS)


def smooth(table: pd.DataFrame) -> Floats:
    """Return a wave over the product of two knobs with many levels: no sum of terms, no steps."""
    return np.sin(table.a / 4) * np.cos(table.b / 5).to_numpy() + 0.3 * table.c


def additive(table: pd.DataFrame) -> Floats:
    return (table.a.isin([3, 7]) + 2 * table.c.isin([1]) + 0.5 * table.d).to_numpy(float)


def decide(table: pd.DataFrame, response: Floats) -> Stop:
    settings = encode(table)
    return decide_stop(Runs.of(settings, response), "auto", FullGrid(settings), 0.9, 5, 1)


@pytest.mark.slow
def test_a_smooth_response_is_predicted_by_the_process_that_is_made_for_it() -> None:
    table, other = draw(60, 0), draw(400, 1)
    stop = decide(table, smooth(table))
    assert stop.model is not None and "gaussian_process" in stop.model.name
    alone = [model.fit(encode(table), smooth(table)) for model in (GaussianProcess(1), ExtraTrees(1), Anova(1))]
    errors = [float(np.std(model.predict(encode(other)) - smooth(other))) for model in (stop.model, *alone)]
    assert errors[0] <= 1.05 * min(errors[1:])


@pytest.mark.long
def test_sums_of_effects_stay_with_a_model_that_tests_them() -> None:
    table = draw(150, 0)
    stop = decide(table, additive(table) + np.random.default_rng(1).normal(0, 0.1, len(table)))
    assert isinstance(stop.model, Anova)
    assert {"a", "c", "d"} <= {term.name for term in stop.model.terms}


def test_of_many_columns_the_slow_models_are_left_out() -> None:
    assert len(make_models("auto", 1, columns=200)) == DECIDING["auto"]
    assert len(make_models("gaussian_process", 1, columns=200)) == 1


def test_a_blend_predicts_the_mean() -> None:
    table = draw(80, 0)
    settings, response = encode(table), additive(table)
    parts = [Anova(1).fit(settings, response), ExtraTrees(1).fit(settings, response)]
    blend = Blend([Anova(1), ExtraTrees(1)]).fit(settings, response)
    expected = np.mean([part.predict(settings) for part in parts], axis=0)
    assert blend.predict(settings) == pytest.approx(expected)
    assert blend.refit(settings, response).predict(settings) == pytest.approx(expected)
    assert sum(blend.importance(settings).values()) == pytest.approx(1)
    assert blend.name == "anova + extra_trees"
    assert {term.term.name for term in blend.explain(settings, response)} >= {"a", "c"}
