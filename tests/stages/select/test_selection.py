"""The stage as a function: what its JSON says about tables with known truth."""

import json

import numpy as np
import pandas as pd
import pytest
from known_tables import grid, known_grid

from knobscope.errors import UserError
from knobscope.stages.select import select_knobs
from knobscope.stages.select.selection import count_looks
from knobscope.statistics.design import Settings
from knobscope.statistics.models import MODELS

FACTORS = ["page", "flush", "cache", "log", "idle", "other"]
KEYS = {
    *("stopped", "reason", "runs", "model", "terms", "r2_splits", "importance", "points"),
    *("worst_predicted", "holdout_r2", "trustworthy", "reason_trust", "fitted", "stable_rounds", "tunability"),
    "expected",
}


def test_anova_stops_ranks_and_names_the_interaction() -> None:
    result = select_knobs(known_grid().sample(140, random_state=1), FACTORS, "y", seed=1).to_json()
    assert set(result) == KEYS
    assert json.loads(json.dumps(result)) == result
    assert result["stopped"] and result["trustworthy"]
    assert "flush:cache" in [term["term"] for term in result["terms"]]
    first, *rest = result["importance"]
    assert first["knob"] == "page" and first["rank"] == 1 and first["above_noise"]
    noise = [knob for knob in rest if knob["knob"] in ("idle", "other")]
    assert not any(knob["above_noise"] for knob in noise)
    for knob in result["importance"]:
        assert knob["rank_low"] <= knob["rank"] <= knob["rank_high"]


def test_what_the_model_does_not_know_is_predicted_worst() -> None:
    """Three settings together make one configuration in 36 ten times as slow: no pair of them tells that."""
    table = grid(a=[1, 2, 3, 4], b=[1, 2, 3], c=["x", "y"], d=[1, 2])
    is_cliff = (table.a == 4) & (table.b == 3) & (table.c == "y") & (table.d == 2)
    noise = np.random.default_rng(2).normal(0, 0.01, len(table))
    table["y"] = 100 * table.a * np.exp(noise) * np.where(is_cliff, 0.1, 1)
    first, second, *_ = select_knobs(table, ["a", "b", "c", "d"], "y", seed=1).worst_predicted
    assert first["configuration"] == {"a": 4, "b": 3, "c": "y", "d": 2}
    assert first["measured"] == pytest.approx(40, rel=0.1)
    assert first["predicted"] > 200
    assert second["predicted"] / second["measured"] > 1 / 3  # the next ones suffer from it, less
    doubled = select_knobs(pd.concat([table, table]), ["a", "b", "c", "d"], "y", seed=1).worst_predicted
    assert [one["runs"] for one in doubled] == [2] * 5


def test_without_a_fit_nothing_is_predicted() -> None:
    few = known_grid().sample(8, random_state=1)
    assert select_knobs(few, FACTORS, "y", seed=1).worst_predicted == []


@pytest.mark.slow
@pytest.mark.parametrize(
    "model",
    [pytest.param(name, marks=() if name == "lightgbm" else pytest.mark.long) for name in MODELS if name != "anova"],
)
def test_other_models_use_the_same_rule(model: str) -> None:
    result = select_knobs(known_grid().sample(140, random_state=1), FACTORS, "y", model=model, seed=1)
    assert len(result.r2_splits) == 10
    assert result.stopped == (min(result.r2_splits) >= 0.9)
    assert result.importance[0]["knob"] == "page"
    assert {factor for term in result.terms for factor in term["factors"]} <= set(FACTORS)


def test_the_seed_decides() -> None:
    runs = known_grid().sample(90, random_state=1)
    once, again, other = (select_knobs(runs, FACTORS, "y", seed=seed) for seed in (1, 1, 2))
    assert once == again
    assert once.r2_splits != other.r2_splits


def test_noise_is_not_trusted() -> None:
    table = grid(a=[1, 2, 3], b=[1, 2, 3], c=[1, 2], d=[1, 2, 3, 4])
    table["y"] = np.random.default_rng(1).normal(100, 2, len(table))
    result = select_knobs(table, ["a", "b", "c", "d"], "y")
    assert not result.stopped and not result.trustworthy
    assert "not predictable" in result.reason


def test_runs_that_were_not_chosen_have_to_be_predicted_on_their_own() -> None:
    table = grid(a=[1, 2, 3, 4], b=[1, 2, 3], c=[1, 2, 3], d=[1, 2, 3], e=[1, 2])
    table["y"] = np.exp(10.0 * table.a + np.random.default_rng(4).normal(0, 1, len(table)))
    runs = table.sample(160, random_state=3)
    assert select_knobs(runs, ["a", "b", "c", "d", "e"], "y").stopped
    result = select_knobs(runs.assign(is_chosen=runs.a != 2), ["a", "b", "c", "d", "e"], "y")
    assert not result.stopped and "drawn at random" in result.reason


def test_looks_are_counted_by_the_random_configurations_so_far() -> None:
    """Four rounds of 20 runs, half of each chosen; the default configuration comes again in every round."""
    table = grid(a=list(range(10)), b=list(range(8))).assign(y=1.0)
    settings = Settings.from_frame(table, ["a", "b"]).with_codes(np.array([[0, 0], *table[["a", "b"]].to_numpy()]))
    rounds, is_random = np.r_[3, np.repeat(range(4), 20)], np.r_[True, np.tile([True] * 10 + [False] * 10, 4)]
    assert count_looks(settings, is_random, rounds) == [10, 20, 30]
    assert count_looks(settings, None, rounds) == [20, 40, 60]


def test_levels_of_the_plan_have_to_be_seen() -> None:
    runs = known_grid().sample(140, random_state=1)
    assert select_knobs(runs, FACTORS, "y").stopped
    later = select_knobs(runs, FACTORS, "y", levels={"page": [4, 8, 16, 32]})
    assert not later.stopped and "page=32" in later.reason


def test_offsets_of_blocks_are_removed_with_the_help_of_sentinels() -> None:
    full = known_grid(noise=0.01)
    runs = full.sample(140, random_state=1)
    runs["block"] = np.arange(len(runs)) % 4
    sentinels = pd.concat([full.iloc[[0]].assign(block=block) for block in range(4) for _ in range(3)])
    runs = pd.concat([runs, sentinels])
    runs["y"] *= np.array([1.0, 2.0, 0.5, 3.0])[runs["block"]]
    runs["y"] *= np.exp(np.random.default_rng(2).normal(0, 0.01, len(runs)))
    assert select_knobs(runs, FACTORS, "y").stopped
    assert not select_knobs(runs.drop(columns="block"), FACTORS, "y").stopped


def test_turning_point_of_an_important_knob_is_found() -> None:
    table = grid(size=[1, 2, 4, 8, 16, 32], mode=[0, 1], other=[1, 2, 3, 4])
    curve = {1: 1.0, 2: 1.5, 4: 2.2, 8: 3.0, 16: 2.0, 32: 1.2}
    table["y"] = 100 * table["size"].map(curve) * np.exp(np.random.default_rng(1).normal(0, 0.02, len(table)))
    result = select_knobs(table, ["size", "mode", "other"], "y")
    assert [(p["knob"], p["type"], p["value"]) for p in result.points] == [("size", "turning", 8.0)]


def test_a_turn_that_another_knob_causes_is_named_with_its_value() -> None:
    """`size` helps up to 4 where `mode` is 1, and does nothing where it is 0."""
    table = grid(size=[1, 2, 3, 4, 5, 6, 7], mode=[0, 1], other=[1, 2, 3])
    table["y"] = 100 * np.exp(table["mode"] * 0.3 * (4 - (table["size"] - 4).abs()))
    table["y"] *= np.exp(np.random.default_rng(3).normal(0, 0.01, len(table)))
    points = select_knobs(table, ["size", "mode", "other"], "y", "anova").points
    found = [(point["knob"], point["type"], point["value"], point["beside"]) for point in points]
    assert ("size", "turning", 4, {"mode": 1}) in found
    assert not [point for point in found if point[3] == {"mode": 0}]
    assert ("size", "turning", 4, None) in found
    scores = [point["score"] for point in points]
    assert scores == sorted(scores, reverse=True)


def test_a_special_value_has_no_position_on_a_log_axis() -> None:
    table = grid(size=[0, 1, 2, 4, 8, 16, 32], mode=[0, 1], other=[1, 2, 3, 4])
    curve = {0: 5.0, 1: 1.0, 2: 1.5, 4: 2.2, 8: 3.0, 16: 2.0, 32: 1.2}
    table["y"] = 100 * table["size"].map(curve) * np.exp(np.random.default_rng(1).normal(0, 0.02, len(table)))
    result = select_knobs(table, ["size", "mode", "other"], "y", axes={"size": "log"})
    assert [(p["knob"], p["type"], p["value"]) for p in result.points] == [("size", "turning", 8.0)]


def test_words_and_truth_values_are_categories() -> None:
    table = grid(sync=["fsync", "fdatasync", "open_sync"], wal=[True, False], size=[1, 2, 3, 4])  # type: ignore[list-item]
    table["y"] = table.sync.map({"fsync": 100.0, "fdatasync": 150.0, "open_sync": 60.0}) + table["size"]
    result = select_knobs(table, ["sync", "wal", "size"], "y")
    assert result.importance[0]["knob"] == "sync"


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda t: t.drop(columns="page"), "no column 'page'"),
        (lambda t: t.drop(columns="y"), "no column 'y'"),
        (lambda t: t.assign(y=0.0), "logarithm"),
        (lambda t: t.assign(y=np.nan), "not a finite number"),
        (lambda t: t.assign(page=None), "no value"),
    ],
)
def test_unusable_tables_are_refused(change: object, message: str) -> None:
    with pytest.raises(UserError, match=message):
        select_knobs(change(known_grid()), FACTORS, "y")  # type: ignore[operator]


def test_unknown_model_is_refused() -> None:
    with pytest.raises(UserError, match="expected one of anova"):
        select_knobs(known_grid(), FACTORS, "y", model="magic")


@pytest.mark.slow
def test_too_few_runs_still_give_an_order_but_no_trust() -> None:
    result = select_knobs(known_grid().sample(14, random_state=1), FACTORS, "y")
    assert not result.stopped and "insufficient samples" in result.reason
    assert sorted(knob["knob"] for knob in result.importance) == sorted(FACTORS)
    assert not result.trustworthy


@pytest.mark.parametrize("model", ["auto", "anova"])
def test_runs_of_a_single_configuration_are_refused(model: str) -> None:
    runs = pd.concat([known_grid().head(1)] * 4)
    with pytest.raises(UserError, match="all 4 successful runs are of one configuration"):
        select_knobs(runs, FACTORS, "y", model=model)


def test_a_single_run_is_refused() -> None:
    with pytest.raises(UserError, match="1 successful runs"):
        select_knobs(known_grid().head(1), FACTORS, "y")
