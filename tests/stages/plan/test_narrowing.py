"""Settings that make a DBMS several times slower are found, and later rounds go without them."""

import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from toy_study import CASE, make_specs

from knobscope.errors import UserError
from knobscope.specs import StudySpecs, Value
from knobscope.stages.plan import DesignSpace, find_costly, find_failing, identify_sampling, narrow, plan_screening
from knobscope.stages.plan.sampling import Key, draw_configurations

NAMES = [f"k{number:02}" for number in range(40)]


@pytest.fixture
def specs() -> StudySpecs:
    knob: dict[str, Any] = {
        "type": "enum",
        "values": ["low", "middle", "high"],
        "default": "low",
        "apply": "restart",
        "mechanism": "other",
        "source": "https://example.org",
    }
    return make_specs(dict.fromkeys(NAMES, (knob, None)), sampling={"runs_per_round": 60})


@pytest.fixture
def space(specs: StudySpecs) -> DesignSpace:
    levels: dict[str, list[Value]] = {name: ["low", "middle", "high"] for name in NAMES}
    return DesignSpace(specs.dbms["toy"], levels, dict.fromkeys(NAMES, "low"), {})


def measure(space: DesignSpace, keys: list[Key], seed: int = 0) -> dict[Key, float]:
    """A DBMS that k00 = high makes 30 times slower and deaf to all else; k01 makes it up to twice as fast."""
    rng, responses = np.random.default_rng(seed), {}
    for key in keys:
        value = dict(zip(space.levels, key, strict=True))
        log = 7.0 + math.log(2) * (value["k01"] == "high")
        log = 7.0 - math.log(30) if value["k00"] == "high" else log
        responses[key] = log + rng.normal(0, 0.1)
    return responses


def draw(space: DesignSpace, count: int, seed: int = 0) -> list[Key]:
    drawn = draw_configurations(space, "lhs", count, np.random.RandomState(seed), set())
    return [space.key(one) for one in drawn]


@pytest.mark.parametrize("seed", range(5))
def test_only_the_costly_level_is_found(space: DesignSpace, seed: int) -> None:
    (found,) = find_costly(space, measure(space, draw(space, 60, seed), seed))
    assert (found.values, found.configurations) == ({"k00": "high"}, 20)
    assert 15 < found.times_slower < 60


def test_stalled_runs_make_no_setting_costly(space: DesignSpace) -> None:
    rng = np.random.default_rng(3)
    for seed in range(20):
        keys = draw(space, 60, seed)
        stalled = rng.random(len(keys)) < 0.1
        responses = 7 + rng.normal(0, 0.1, len(keys)) - stalled * math.log(100)
        assert find_costly(space, dict(zip(keys, responses.tolist(), strict=True))) == []


def test_a_level_with_which_nothing_ever_succeeded_is_found(space: DesignSpace) -> None:
    responses = measure(space, draw(space, 60))
    failing = {
        key: math.nan if key[2] == "middle" or key[3] == key[4] == "high" else log for key, log in responses.items()
    }
    (found,) = find_failing(space, failing)
    assert (found.values, found.configurations) == ({"k02": "middle"}, 20)
    assert find_failing(space, dict(list(failing.items())[:6])) == []  # too few to tell


def test_a_plan_depends_on_the_share_of_drawn_knobs_only_where_not_all_are(specs: StudySpecs) -> None:
    assert identify_sampling(specs, CASE) == {"sampling": "narrowing"}
    sampling = specs.study.sampling.model_copy(update={"varied": 0.3})
    changed = replace(specs, study=specs.study.model_copy(update={"sampling": sampling}))
    assert identify_sampling(changed, CASE) == {"sampling": "narrowing", "varied": 0.3}
    rows = [json.loads(row["configuration"]) for row in plan_screening(changed, CASE, 0) if not row["is_sentinel"]]
    changes = [sum(value != "low" for value in row.values()) / len(NAMES) for row in rows]
    assert 0.15 < sum(changes) / len(changes) < 0.25


def test_what_is_costly_only_together_is_left_out_together(space: DesignSpace) -> None:
    """A wait needs both knobs; each of them alone may stay."""
    rng, keys = np.random.default_rng(2), draw(space, 240)
    waits = {key: key[0] == "high" and key[1] == "low" for key in keys}
    responses = {key: 7.0 - math.log(160) * waits[key] + rng.normal(0, 0.1) for key in keys}
    found = find_costly(space, responses)
    assert [one.values for one in found] == [{"k00": "high", "k01": "low"}]  # one of them may be the default
    assert found[0].times_slower == pytest.approx(160, rel=0.1) and found[0].configurations == sum(waits.values())
    drawn = draw(narrow(space, found), 90, 7)
    assert not any(key[0] == "high" and key[1] == "low" for key in drawn)
    assert {key[0] for key in drawn} == {key[1] for key in drawn} == {"low", "middle", "high"}


def test_the_default_and_factors_of_the_load_are_never_left_out(space: DesignSpace) -> None:
    responses = measure(space, draw(space, 60))
    default = replace(space, default={**space.default, "k00": "high"})
    assert find_costly(default, responses) == []
    factor = {("workload.threads" if name == "k00" else name): levels for name, levels in space.levels.items()}
    asked = replace(space, levels=factor, default={**space.default, "workload.threads": "low"})
    assert find_costly(asked, responses) == []


def test_configurations_without_a_result_do_not_count(space: DesignSpace) -> None:
    responses = measure(space, draw(space, 60))
    failed = {key: math.nan if key[0] == "high" else response for key, response in responses.items()}
    assert find_costly(space, failed) == []
    assert find_costly(space, dict.fromkeys(responses, math.nan)) == []
    assert find_costly(space, {}) == []


def test_later_rounds_are_drawn_without_costly_settings(specs: StudySpecs, space: DesignSpace) -> None:
    first = plan_screening(specs, CASE, 0)
    keys = [space.key(json.loads(row["configuration"])) for row in first]
    assert {key[0] for key in keys} == {"low", "middle", "high"}
    earlier = measure(space, keys)
    second = plan_screening(specs, CASE, 1, earlier)
    drawn = [json.loads(row["configuration"]) for row in second if not row["is_sentinel"]]
    assert len(drawn) == 60 and not {space.key(one) for one in drawn} & earlier.keys()
    assert {one["k00"] for one in drawn} == {"low", "middle"}
    assert all({one[name] for one in drawn} == {"low", "middle", "high"} for name in NAMES[1:])
    assert not any(row["is_chosen"] for row in second)
    with pytest.raises(UserError, match="--plans and --runs"):
        plan_screening(specs, CASE, 1)


def test_narrow_keeps_all_other_levels(space: DesignSpace) -> None:
    costly = find_costly(space, measure(space, draw(space, 60)))
    levels = narrow(space, costly).levels
    assert levels["k00"] == ["low", "middle"] and all(levels[name] == space.levels[name] for name in NAMES[1:])
