"""The stop rule and its traps."""

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from known_tables import grid, known_grid

from knobscope.statistics.design import FullGrid, Settings
from knobscope.statistics.holding_out import r_squared
from knobscope.statistics.models.anova import Anova
from knobscope.statistics.stopping import Runs, Stop, decide_stop

FACTORS = ["page", "flush", "cache", "log", "idle", "other"]


def decide(frame: pd.DataFrame, full: pd.DataFrame, factors: list[str] = FACTORS, model: str = "anova") -> Stop:
    both = Settings.from_frame(pd.concat([frame, full]), factors)
    settings, possible = both.take(slice(len(frame))), both.take(slice(len(frame), None))
    return decide_stop(Runs.of(settings, frame.y.to_numpy(float)), model, possible, 0.9, 10, 1)


def test_stops_when_the_rest_is_predictable() -> None:
    full = known_grid()
    sample = full.sample(120, random_state=1)
    stop = decide(sample, full)
    rest = full.drop(sample.index)
    assert stop.stopped and len(stop.r2_splits) == 10 and min(stop.r2_splits) >= 0.9
    settings = Settings.from_frame(full, FACTORS).take(full.index.isin(rest.index))
    assert stop.model is not None
    assert r_squared(rest.y.to_numpy(), stop.model.predict(settings)) > 0.95


def test_does_not_stop_before_every_level_was_seen() -> None:
    full = known_grid()
    sample = full[full.other != 4].sample(150, random_state=1)
    stop = decide(sample, full)
    assert not stop.stopped
    assert "other=4" in stop.reason and "not seen" in stop.reason


def test_does_not_stop_before_every_cell_of_an_interaction_was_seen() -> None:
    full = known_grid()
    sample = full[~((full.flush == 1) & (full.cache == 64))].sample(150, random_state=1)
    stop = decide(sample, full)
    assert not stop.stopped
    assert "flush=1, cache=64" in stop.reason


def test_impossible_cells_need_not_be_seen() -> None:
    full = known_grid()
    full = full[~((full.flush == 1) & (full.cache == 64))]
    assert decide(full.sample(150, random_state=1), full).stopped


def test_a_full_grid_is_assumed_where_nothing_else_is_known() -> None:
    full = known_grid()
    sample = full[~((full.flush == 1) & (full.cache == 64))].sample(150, random_state=1)
    settings = Settings.from_frame(sample, FACTORS)
    runs = Runs.of(settings, sample.y.to_numpy())
    assert "flush=1, cache=64" in decide_stop(runs, "anova", FullGrid(settings), 0.9, 10, 1).reason


@pytest.mark.parametrize("rows", [4, 12, 20])
def test_too_few_runs_are_said_so(rows: int) -> None:
    full = known_grid()
    stop = decide(full.sample(rows, random_state=2), full)
    assert not stop.stopped
    assert "insufficient samples" in stop.reason


def test_replicates_show_that_noise_is_the_limit() -> None:
    full = known_grid(noise=0.0)
    rng = np.random.default_rng(1)
    sample = pd.concat([full.sample(120, random_state=1)] * 3)
    sample["y"] *= np.exp(rng.normal(0, 1.0, len(sample)))
    stop = decide(sample, full)
    assert not stop.stopped
    assert stop.reason.startswith("not predictable: noise explains")


def test_a_grid_without_effects_is_not_predictable() -> None:
    full = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2], d=[1, 2, 3, 4])
    full["y"] = np.random.default_rng(1).normal(100, 2, len(full))
    stop = decide(full, full, ["a", "b", "c", "d"])
    assert not stop.stopped
    assert "not predictable" in stop.reason and "noise" in stop.reason


def test_constant_response_does_not_stop() -> None:
    full = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2, 3])
    full["y"] = 5.0
    assert not decide(full, full, ["a", "b", "c"]).stopped


def test_replicates_of_a_setting_are_averaged() -> None:
    frame = pd.DataFrame({"a": [1, 1, 2, 2, 2], "y": [1.0, 3.0, 4.0, 5.0, 6.0]})
    runs = Runs.of(Settings.from_frame(frame, ["a"]), frame.y.to_numpy())
    assert runs.response.tolist() == [2.0, 5.0]
    assert runs.counts.tolist() == [2, 3]
    assert runs.noise_degrees == 3
    assert runs.noise_variance == pytest.approx((2 + 2) / 3)


def test_no_false_stop_with_a_rare_but_strong_cell() -> None:
    full = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2, 3], d=[1, 2], e=[1, 2, 3])
    full["y"] = 60 + 60 * (full.a == 1) + 60 * ((full.a == 2) & (full.b == 3)) + full.e
    false = 0
    for seed in range(20):
        sample = full.sample(45, random_state=seed)
        stop = decide(sample, full, ["a", "b", "c", "d", "e"])
        if stop.stopped and stop.model is not None:
            rest = Settings.from_frame(full, ["a", "b", "c", "d", "e"]).take(~full.index.isin(sample.index))
            false += r_squared(full.drop(sample.index).y.to_numpy(), stop.model.predict(rest)) < 0.85
    assert false == 0


def test_a_handful_of_runs_never_stops() -> None:
    full = grid(a=[1, 2, 3, 4], b=[1, 2, 3], c=[1, 2, 3], d=[1, 2])
    full["y"] = 10.0 * full.a  # perfectly predictable
    stop = decide(full.sample(25, random_state=1), full, ["a", "b", "c", "d"])
    assert not stop.stopped and min(stop.r2_splits) > 0.99
    assert "30 are the least" in stop.reason
    assert decide(full.sample(40, random_state=1), full, ["a", "b", "c", "d"]).stopped
    settings = Settings.from_frame(full.sample(40, random_state=1), ["a", "b", "c", "d"])
    runs = Runs.of(settings, 10.0 * np.array(settings.levels_of("a"))[settings.column("a")], np.arange(40) % 2 == 0)
    half = decide_stop(runs, "anova", FullGrid(settings), 0.9, 10, 1)
    assert not half.stopped and half.reason == "20 random configurations, 30 are the least to stop with"


def test_predictions_beyond_all_that_was_measured_are_not_believed() -> None:
    # Parity of three switches, and the one cell of them that nobody has seen: pairs of switches fit all others exactly.
    full = grid(a=[0, 1], b=[0, 1], c=[0, 1, 2, 3, 4], d=[1, 2, 3], e=[1, 2, 3])
    full["y"] = 4.0 * ((full.a + full.b + (full.c > 0)) % 2) + 0.1 * full.d
    seen = full[~((full.a == 1) & (full.b == 1) & (full.c == 0))]
    stop = decide(seen.sample(120, random_state=1), full, ["a", "b", "c", "d", "e"])
    assert not stop.stopped and min(stop.r2_splits) > 0.9
    assert "predictions of" in stop.reason
    runs = Runs.of(Settings.from_frame(seen, ["a", "b", "c", "d", "e"]), seen.y.to_numpy(float), is_log=True)
    stop = decide_stop(runs, "anova", FullGrid(Settings.from_frame(full, ["a", "b", "c", "d", "e"])), 0.9, 10, 1)
    assert stop.reason.endswith("measured were 1.11 to 73.7"), "in the unit of the response, not its logarithm"


def test_large_cells_of_three_switches_have_to_be_seen() -> None:
    full = grid(a=[0, 1], b=[0, 1], c=[0, 1], d=[1, 2, 3, 4], e=[1, 2, 3, 4])
    full["y"] = 5.0 * full.a + 3 * full.b + full.d
    seen = full[~((full.a == 1) & (full.b == 1) & (full.c == 0))]
    stop = decide(seen, full, ["a", "b", "c", "d", "e"])
    assert not stop.stopped and "1\u00a0cell of a:b:c not seen" in stop.reason


def test_large_cells_that_were_hardly_seen_have_to_be_seen_more() -> None:
    full = grid(a=[0, 1], b=[0, 1], c=[1, 2, 3, 4], d=[1, 2, 3, 4], e=[1, 2, 3])
    full["y"] = 5.0 * full.a + full.d
    common = (full.a == 0) | (full.b == 0)
    sample = pd.concat([full[common].sample(110, random_state=1), full[~common].sample(2, random_state=1)])
    stop = decide(sample, full, ["a", "b", "c", "d", "e"])
    assert not stop.stopped and min(stop.r2_splits) > 0.9
    assert "hardly seen, such as a=1, b=1, 25 % of all settings" in stop.reason


@pytest.mark.parametrize("level", [None, 2])
def test_random_runs_have_to_be_predicted_on_their_own(level: int | None) -> None:
    # Only the first factor counts, the rest is noise: random runs of one of its levels are not predicted at all.
    full = grid(a=[1, 2, 3, 4], b=[1, 2, 3], c=[1, 2, 3], d=[1, 2, 3], e=[1, 2])
    full["y"] = 10.0 * full.a + np.random.default_rng(4).normal(0, 1, len(full))
    sample = full.sample(160, random_state=3)
    is_random = (sample.a == level).to_numpy() if level else np.arange(len(sample)) < 40
    settings = Settings.from_frame(sample, ["a", "b", "c", "d", "e"])
    runs = Runs.of(settings, sample.y.to_numpy(), is_random)
    stop = decide_stop(runs, "anova", FullGrid(settings), 0.9, 10, 1)
    assert stop.stopped == (level is None) and min(stop.r2_splits) > 0.9
    assert stop.stopped or f"on the {is_random.sum()} configurations that were drawn at random" in stop.reason


def test_terms_that_saw_the_held_out_rows_are_not_counted() -> None:
    """102 rows for 50 columns: terms chosen on all rows and then held out promise what new rows do not keep."""
    rng = np.random.default_rng(3)
    promised, kept, counted = [], [], []
    for seed in range(8):
        codes = rng.integers(0, 3, (102 + 1000, 5))
        frame = pd.DataFrame(codes, columns=[f"k{number}" for number in range(5)])
        response = frame["k0"] + rng.normal(0, 0.8, len(frame))
        settings, y = Settings.from_frame(frame, list(frame.columns)), response.to_numpy(float)
        seen, new = settings.take(slice(102)), settings.take(slice(102, None))
        stop = decide_stop(Runs.of(seen, y[:102]), "anova", FullGrid(settings), 0.99, 10, seed)
        fitted = Anova(2).fit(seen, y[:102])
        kept.append(r_squared(y[102:], fitted.predict(new)))
        assert stop.model is not None
        promised.append(np.mean(stop.r2_splits) - r_squared(y[102:], stop.model.predict(new)))
        counted.append(np.mean(list(refitted_scores(fitted, seen, y[:102], rng))))
    assert np.mean(counted) - np.mean(kept) > 0.05
    assert np.mean(promised) < 0.01


def refitted_scores(fitted: Anova, seen: Settings, y: np.ndarray, rng: np.random.Generator) -> Iterator[float]:
    """R2 on held-out fifths when the terms, chosen with those rows in view, are kept."""
    for _ in range(2):
        order = rng.permutation(len(y))
        for fold in range(5):
            test, train = order[fold::5], np.setdiff1d(order, order[fold::5])
            yield r_squared(y[test], fitted.refit(seen.take(train), y[train]).predict(seen.take(test)))
