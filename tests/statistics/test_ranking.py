"""Permutation importance is the mean over all ways to shuffle a knob's column."""

import numpy as np
import pandas as pd
import pytest

from knobscope.statistics.design import Settings
from knobscope.statistics.models.anova import Anova
from knobscope.statistics.ranking import rank_knobs
from knobscope.statistics.stopping import Runs


def rank(levels: int, rows: int = 120) -> dict[str, float]:
    """Rank knobs of which one alone is the response, and return what each has lost by shuffling."""
    rng = np.random.default_rng(1)
    knobs = pd.DataFrame(
        {name: rng.integers(0, levels, rows) for name in ("all", *(f"idle{number}" for number in range(6)))}
    )
    settings, response = Settings.from_frame(knobs, list(knobs)), knobs["all"].to_numpy(float)
    runs = Runs.of(settings, response)
    ranking = rank_knobs(runs, Anova(1).fit(runs.settings, runs.response), seed=0)
    return {one.knob: one.permutation for one in ranking.knobs}


@pytest.mark.parametrize("levels", [2, 3, 5])
def test_a_knob_that_is_everything_loses_twice_the_variance(levels: int) -> None:
    """The mean square of the difference of two draws is twice their variance: R2 falls from 1 to -1."""
    lost = rank(levels)
    assert lost.pop("all") == pytest.approx(2)
    assert lost == pytest.approx(dict.fromkeys(lost, 0), abs=1e-9)


def test_of_many_levels_some_shuffles_stand_for_all() -> None:
    assert rank(levels=30, rows=600)["all"] == pytest.approx(2, abs=0.1)


def test_intervals_of_ranks_hold_knobs_that_cannot_be_told_apart() -> None:
    """Six idle knobs share the ranks from 2 on, and their intervals span most of those."""
    rng = np.random.default_rng(4)
    knobs = pd.DataFrame({name: rng.integers(0, 3, 90) for name in ("all", *(f"idle{number}" for number in range(6)))})
    response = knobs["all"].to_numpy(float) + rng.normal(0, 0.3, 90)
    runs = Runs.of(Settings.from_frame(knobs, list(knobs)), response)
    first, *others = rank_knobs(runs, Anova(1).fit(runs.settings, runs.response), seed=0).knobs
    assert (first.knob, first.rank_low, first.rank_high) == ("all", 1, 1)
    assert all(2 <= one.rank_low <= one.rank <= one.rank_high <= 7 for one in others)
    assert np.mean([one.rank_high - one.rank_low for one in others]) >= 3
