"""Every sampling method, on random spaces of mixed knobs with constraints: what must hold whatever the space."""

import math
import sys
from collections import Counter
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from toy_study import make_dbms

from knobscope.specs import Knob, Value
from knobscope.stages.plan import SAMPLERS, DesignSpace, Draw, count_random, draw_configurations
from knobscope.stages.plan.levels import screening_levels

METHODS = sorted(SAMPLERS)


def knob(**changes: Any) -> dict[str, Any]:
    common = {"apply": "restart", "mechanism": "other", "source": "https://example.org", "default": 1}
    return {**common, "type": "integer", "range": [1, 100], **changes}


def space_of(knobs: dict[str, dict[str, Any]], levels: int) -> DesignSpace:
    dbms = make_dbms(knobs)
    default: dict[str, Value] = {name: spec.canonical(spec.default) for name, spec in dbms.knobs.items()}
    spread = {name: screening_levels(spec, None, levels, default[name]) for name, spec in dbms.knobs.items()}
    return DesignSpace(dbms, spread, default, {"threads": 4, "records": 1000})


@pytest.mark.parametrize("method", ["lhs", "random"])
def test_a_share_of_the_knobs_is_drawn_and_the_others_keep_their_defaults(method: str) -> None:
    """A knob with four levels, the default among them, differs from it in three fourths of the drawn ones."""
    space = replace(space_of({f"k{number}": knob() for number in range(20)}, 4), varied=0.3)
    drawn = draw_configurations(space, method, 200, np.random.RandomState(1), {space.key(space.default)})
    for name, levels in space.levels.items():
        counts = Counter(one[name] for one in drawn)
        expected = dict.fromkeys(levels, 15) | {1: 15 + 140}
        spread = 2 if method == "lhs" else 15
        assert all(abs(counts[level] - expected[level]) <= spread for level in levels), counts


def test_knobs_that_require_nothing_take_no_time() -> None:
    """A study may vary hundreds, and a few that require something are looked at in thousands of configurations."""
    many = {f"k{number}": knob() for number in range(200)} | {"bound": knob(requires="k0 == 1")}
    space, calls = space_of(many, 4), []
    assert space.is_restricted
    assert space.allows(space.default)
    sys.setprofile(lambda frame, event, _: calls.append(frame.f_code.co_name) if event == "call" else None)
    try:
        assert not space.allows({**space.default, "k0": 100})
    finally:
        sys.setprofile(None)
    assert len(calls) < 50, Counter(calls)


@st.composite
def spaces(draw: st.DrawFn) -> DesignSpace:
    """An integer, a real on a log scale, an enum, a knob with special values, a switch, and a knob of the switch."""
    knobs = {
        "buffers": knob(range=[1, draw(st.integers(2, 10_000))], scale="log"),
        "ratio": knob(type="real", range=[0.01, draw(st.floats(0.5, 90))], scale="log", default=0.02),
        "mode": knob(type="enum", values=["a", "b", "c"][: draw(st.integers(2, 3))], range=None, default="a"),
        "delay": knob(range=[10, 500], special={0: "off", -1: "automatic"}, default=0),
        "sync": knob(type="boolean", range=None, default=True),
        # Conditional: it says nothing while sync is off, and keeps its default then.
        "depth": knob(range=[1, 64], scale="log", requires="sync or depth == 1"),
        "log": knob(range=[2, 2000], scale="log", default=2, requires="log >= 2 * depth"),
    }
    chosen = draw(st.sets(st.sampled_from(["buffers", "ratio", "mode", "delay"]), min_size=1))
    return space_of({name: knobs[name] for name in knobs if name in chosen | {"sync", "depth", "log"}}, 3)


def responses_of(space: DesignSpace, seen: set[tuple[Value, ...]]) -> dict[tuple[Value, ...], float]:
    """Some response for what was seen; the first configuration failed."""
    known: dict[tuple[Value, ...], float] = {
        key: float(sum(map(list.index, space.levels.values(), key))) for key in seen
    }
    return {key: math.nan if rank == 0 else known[key] for rank, key in enumerate(sorted(known, key=repr))}


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
@settings(max_examples=6, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(space=spaces(), seed=st.integers(0, 2**31), rounds=st.lists(st.integers(1, 12), min_size=1, max_size=3))
def test_allowed_new_and_the_same_for_a_seed(method: str, space: DesignSpace, seed: int, rounds: list[int]) -> None:
    def draw_all() -> list[dict[str, Value]]:
        seen = {space.key(space.default)}
        drawn: list[dict[str, Value]] = []
        for number, count in enumerate(rounds):
            rng = np.random.RandomState(seed + number)
            drawn += draw_configurations(space, method, count, rng, seen, responses_of(space, seen))
        assert len(seen) == 1 + len(drawn)
        return drawn

    drawn = draw_all()
    assert drawn == draw_all()
    everything = (dict(zip(space.levels, values, strict=True)) for values in product(*space.levels.values()))
    assert len(drawn) == min(sum(rounds), sum(map(space.allows, everything)) - 1)
    assert len({space.key(one) for one in drawn} | {space.key(space.default)}) == len(drawn) + 1
    for one in drawn:
        assert space.allows(one)
        assert all(value in space.levels[name] for name, value in one.items())


@pytest.mark.parametrize("method", METHODS)
def test_a_used_up_space_ends_short(method: str) -> None:
    space = space_of({"mode": knob(type="enum", values=["a", "b", "c"], range=None, default="a")}, 3)
    seen = {space.key(space.default)}
    drawn = draw_configurations(space, method, 10, np.random.RandomState(1), seen)
    assert {one["mode"] for one in drawn} == {"b", "c"}
    assert draw_configurations(space, method, 10, np.random.RandomState(2), seen) == []


@pytest.mark.parametrize("method", METHODS)
def test_a_space_too_large_to_list_is_drawn_from(method: str) -> None:
    space = space_of({f"k{i}": knob(range=[1, 4]) for i in range(12)}, 4)
    seen: set[tuple[Value, ...]] = set()
    assert len(draw_configurations(space, method, 30, np.random.RandomState(1), seen)) == len(seen) == 30


def imbalance(draws: list[dict[str, Value]], space: DesignSpace) -> float:
    """Spread of level counts, the worst knob: 0 when every level comes equally often."""
    counts = [Counter(one[name] for one in draws) for name in space.levels]
    return max(
        max(count.values()) - min(count[v] for v in space.levels[n])
        for count, n in zip(counts, space.levels, strict=True)
    )


@pytest.mark.parametrize("method", ["balanced", "lhs"])
def test_levels_come_more_equally_often_than_at_random(method: str) -> None:
    space = space_of(
        {"a": knob(range=[1, 8]), "b": knob(range=[1, 6]), "c": knob(range=[1, 4]), "d": knob(range=[1, 12])}, 12
    )
    for seed in range(5):
        even, plain = (
            draw_configurations(space, each, 24, np.random.RandomState(seed), set()) for each in (method, "random")
        )
        assert imbalance(even, space) <= 2 < imbalance(plain, space)


def test_stratified_takes_equally_many_of_every_level_of_a_knob() -> None:
    space = space_of({"a": knob(range=[1, 8]), "b": knob(range=[1, 4])}, 8)
    drawn = draw_configurations(space, "stratified", 16, np.random.RandomState(1), set())
    assert any(len(set(Counter(one[name] for one in drawn).values())) == 1 for name in space.levels)


def test_distribution_aware_goes_where_the_response_varies() -> None:
    codes = np.array(list(product(range(20), range(20))))
    taken = np.arange(0, 400, 7)
    response = np.where(codes[taken, 0] >= 15, codes[taken, 0] * 10.0 * (codes[taken, 1] % 2), 0.0)
    rng = np.random.default_rng(1)
    chosen = SAMPLERS["distribution_aware"](Draw(codes, (20, 20), taken, response, 60, rng))
    assert (codes[chosen, 0] >= 13).mean() > 0.7
    assert not set(chosen) & set(taken)


def test_active_looks_first_at_pairs_of_levels_that_nobody_has_seen() -> None:
    codes = np.array(list(product(range(4), range(4), range(4))))
    rng = np.random.default_rng(1)
    nothing = np.zeros(0, np.int64)
    first = SAMPLERS["active"](Draw(codes, (4, 4, 4), nothing, np.zeros(0), 30, rng))
    chosen = np.r_[first, SAMPLERS["active"](Draw(codes, (4, 4, 4), first, np.full(30, np.nan), 10, rng))]
    pairs = [(a, b) for a, b in ((0, 1), (0, 2), (1, 2))]
    assert min(len({tuple(codes[row, list(pair)]) for row in chosen}) for pair in pairs) == 16


def test_levels_of_a_real_knob_are_spaced_by_ratio() -> None:
    levels = screening_levels(
        Knob.model_validate(knob(type="real", range=[0.001, 1], scale="log", special={-1: "auto"}, default=0.01)),
        None,
        4,
        0.01,
    )
    assert levels == [-1, 0.001, 0.01, 0.1, 1]


def test_active_sampling_begins_with_the_latin_hypercube_of_lhs() -> None:
    space = space_of({"a": knob(range=[1, 8]), "b": knob(range=[1, 6]), "c": knob(range=[1, 4])}, 8)
    active = draw_configurations(space, "active", 48, np.random.RandomState(1), set())
    assert active[:39] == draw_configurations(space, "lhs", 39, np.random.RandomState(1), set())
    assert len(active) == 48


def test_rows_of_a_whole_table_come_by_a_latin_hypercube() -> None:
    codes = np.array(list(product(range(8), range(6), range(4))))
    nothing = np.zeros(0, np.int64)

    def imbalance(method: str, seed: int) -> int:
        first = SAMPLERS[method](Draw(codes, (8, 6, 4), nothing, np.zeros(0), 24, np.random.default_rng(seed)))
        return max(int(np.ptp(np.bincount(column))) for column in codes[first].T)

    assert max(imbalance("active", seed) for seed in range(5)) <= 3
    assert max(imbalance("random", seed) for seed in range(5)) > 3


def test_half_of_active_sampling_favours_no_row_and_the_rest_goes_by_the_size_of_cells() -> None:
    # Where the first switch is off the second is fixed: the cell (0, 0) is large.
    codes = np.array([(a, b, c) for a in range(2) for b in range(2) for c in range(60) if a or (not b and c < 40)])
    rng = np.random.default_rng(1)
    nothing = np.zeros(0, np.int64)
    large = np.mean(codes[:, 0] == 0)
    chosen = SAMPLERS["active"](Draw(codes, (2, 2, 60), nothing, np.zeros(0), 40, rng))
    assert len(set(chosen.tolist())) == 40
    assert [count_random("active", 40, taken) for taken in (0, 20, 30)] == [35, 25, 20]
    assert count_random("lhs", 40, 30) == 40
    assert abs(np.mean(codes[chosen, 0] == 0) - large) < 0.15
    firsts = [SAMPLERS["active"](Draw(codes, (2, 2, 60), nothing, np.zeros(0), 40, rng))[:35] for _ in range(300)]
    counts = np.bincount(np.concatenate(firsts), minlength=len(codes))
    expected = 300 * 35 / len(codes)
    assert abs(counts - expected).max() < 5 * np.sqrt(expected)
