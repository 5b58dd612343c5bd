"""The Gaussian process: what it learns from few runs, and how it treats factors of all kinds."""

import numpy as np
import pandas as pd
import pytest

from knobscope.statistics.design import Settings
from knobscope.statistics.models import make_models
from knobscope.statistics.models.gaussian import GaussianProcess


def draw(rows: int, seed: int = 0) -> tuple[Settings, np.ndarray]:
    """Return random settings of two switches, a word, a number and five idle switches, and ln(throughput)."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame({f"idle_{number}": rng.integers(0, 2, rows).astype(bool) for number in range(5)})
    frame["flush"], frame["log"] = rng.integers(0, 2, rows).astype(bool), rng.integers(0, 2, rows).astype(bool)
    frame["method"] = rng.choice(["b", "c", "a"], rows)
    frame["size"] = rng.choice([1, 10, 100, 1000, 10000], rows)
    response = 1.5 * frame["flush"] * frame["log"] + frame["method"].map({"a": 0.0, "b": 0.6, "c": -0.2})
    response += 0.2 * np.log10(frame["size"])
    levels = {"method": ["a", "b", "c"], "size": [1, 10, 100, 1000, 10000]}
    return Settings.from_frame(frame, list(frame.columns), levels), response.to_numpy(float)


def error(rows: int, noise: float = 0.0) -> float:
    """Return the root mean square error on other settings."""
    settings, response = draw(rows)
    model = GaussianProcess().fit(settings, response + np.random.default_rng(5).normal(0, noise, rows))
    others, truth = draw(500, seed=1)
    return float(np.sqrt(np.mean((model.predict(others) - truth) ** 2)))


def test_few_runs_are_enough_for_interactions() -> None:
    assert error(60) < 0.08
    assert error(60, noise=0.1) < 0.15


def test_what_matters_is_distinguished_from_what_does_not() -> None:
    settings, response = draw(80)
    model = GaussianProcess().fit(settings, response)
    importance = model.importance(settings)
    assert set(sorted(importance, key=lambda name: -importance[name])[:4]) == {"flush", "log", "method", "size"}
    assert sum(importance.values()) == pytest.approx(1)
    terms = {one.term.name: one.explained_share for one in model.explain(settings, response)}
    assert terms["flush:log"] > 0.05
    assert terms["flush:log"] == max(share for name, share in terms.items() if ":" in name)


def test_equal_rows_give_equal_models() -> None:
    settings, response = draw(40)
    once, again = (GaussianProcess(3).fit(settings, response).predict(settings) for _ in range(2))
    assert np.array_equal(once, again)


def test_a_response_that_never_changes_is_predicted() -> None:
    settings, _ = draw(30)
    assert GaussianProcess().fit(settings, np.full(30, 7.0)).predict(settings) == pytest.approx(np.full(30, 7.0))


def test_one_factor_of_words_is_distinguished() -> None:
    frame = pd.DataFrame({"method": ["a", "b", "c", "d"] * 6})
    settings = Settings.from_frame(frame, ["method"])
    response = frame["method"].map({"a": 1.0, "b": 5.0, "c": 2.0, "d": 9.0}).to_numpy(float)
    model = GaussianProcess().fit(settings, response)
    assert model.predict(settings) == pytest.approx(response, abs=0.3)
    assert model.importance(settings) == {"method": pytest.approx(1)}


def test_the_name_stands_for_it() -> None:
    (model,) = make_models("gaussian_process", 4)
    assert (model.name, model.fresh().name) == ("gaussian_process", "gaussian_process")


@pytest.mark.parametrize("seed", [0, 4])
def test_a_wave_behind_a_switch_is_no_noise(seed: int) -> None:
    """With seed 4 a climb from long length scales alone ends where all that varies is noise."""
    rng = np.random.default_rng(seed)

    def draw(rows: int) -> tuple[Settings, np.ndarray]:
        table = pd.DataFrame({f"k{knob}": rng.integers(0, 8, rows) for knob in range(6)})
        response = np.where(table["k0"] < 4, np.sin(table["k1"]), 0) + rng.normal(0, 0.02, rows)
        return Settings.from_frame(table, list(table)), response

    model = GaussianProcess().fit(*draw(80))
    new, response = draw(300)
    assert np.std(model.predict(new) - response) < 0.3 * np.std(response)
