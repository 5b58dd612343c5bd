"""Values that do not count, or are forbidden, beside the default configuration: measured beside the smallest change."""

import json
from typing import Any

from toy_study import CASE, make_specs

from knobscope.specs import StudySpecs
from knobscope.stages.plan import list_dependents, list_left_out, plan_reinforcement, plan_sweep, sweep_effort
from knobscope.workflow.forecast import describe_study

KNOB = {"type": "integer", "apply": "restart", "mechanism": "other", "source": "https://example.org"}
SWITCH = {**KNOB, "type": "boolean", "default": False}


def number(default: int, values: list[int] | None = None, **more: Any) -> tuple[dict[str, Any], dict[str, Any] | None]:
    """Return a knob, and the values that a study asks for."""
    return {**KNOB, "range": [0, 1000], "default": default, **more}, {"values": values} if values else None


def changes_of(specs: StudySpecs, rows: list[Any]) -> list[dict[str, Any]]:
    """Return what each configuration of a plan changes of the default one, sentinels left out."""
    default = {name: specs.dbms["toy"].knobs[name].default for name in specs.study.knobs["toy"]}
    configurations = [json.loads(row["configuration"]) for row in rows if not row["is_sentinel"]]
    return [{name: value for name, value in one.items() if value != default[name]} for one in configurations]


def as_set(changes: list[dict[str, Any]]) -> set[str]:
    return {json.dumps(one, sort_keys=True) for one in changes}


DELAYED = {"delay": number(0, [0, 10, 100]), "siblings": number(5, [1, 5, 50], when="delay > 0")}


def test_a_knob_is_swept_beside_the_nearest_values_of_others_with_which_it_counts() -> None:
    specs = make_specs(DELAYED)
    rows = plan_sweep(specs, CASE, ["siblings"])
    for block in {row["block_id"] for row in rows}:
        own = changes_of(specs, [row for row in rows if row["block_id"] == block])
        expected = [{"delay": 10}, {"delay": 10, "siblings": 1}, {"delay": 10, "siblings": 50}]
        assert len(own) == 3
        assert as_set(own) == as_set(expected)
    assert [one.change for one in list_dependents(specs, CASE)] == [{"delay": 10}, {"delay": 10}]
    assert list_left_out(specs, CASE) == []


def test_what_it_is_compared_with_is_measured_once_if_it_is_a_swept_value_as_well() -> None:
    specs = make_specs(DELAYED)
    rows = plan_sweep(specs, CASE, ["siblings", "delay"])
    own = changes_of(specs, [row for row in rows if row["repeat"] == 0])
    assert own.count({"delay": 10}) == 1
    assert len(own) == len(as_set(own)) == 4


def test_where_the_default_satisfies_it_nothing_changes() -> None:
    specs = make_specs({**DELAYED, "delay": number(10, [0, 10, 100])})
    changes = changes_of(specs, plan_sweep(specs, CASE, ["siblings"]))
    assert as_set(changes) == as_set([{"siblings": 1}, {"siblings": 50}])
    assert list_dependents(specs, CASE) == []


def test_a_forbidden_value_comes_with_a_change_that_allows_it_and_the_default() -> None:
    """`low` = 80 needs a higher `high`; the other value of it is measured beside the default configuration."""
    specs = make_specs({"low": number(10, [5, 10, 80]), "high": number(50, [20, 50, 90, 500], requires="high >= low")})
    changes = changes_of(specs, plan_sweep(specs, CASE, ["low"]))
    assert as_set(changes) == as_set([{"low": 5}, {"high": 90}, {"high": 90, "low": 80}])


def test_a_change_may_need_a_second_knob() -> None:
    """`skip` counts at level 1, which is allowed without senders only."""
    knobs = {
        "skip": number(5, [5, 9], when="level == 1"),
        "level": number(2, [1, 2], requires="level != 1 or senders == 0"),
        "senders": number(10, [0, 10]),
    }
    specs = make_specs(knobs)
    changes = changes_of(specs, plan_sweep(specs, CASE, ["skip"]))
    change = {"level": 1, "senders": 0}
    assert as_set(changes) == as_set([change, {**change, "skip": 9}])
    assert as_set(changes_of(specs, plan_sweep(specs, CASE, ["level"]))) == as_set([{"senders": 0}, change])


def test_what_a_change_moves_has_to_count_itself() -> None:
    knobs = {
        "usec": number(5, [5, 9], when="count > 0"),
        "count": number(0, [0, 3], when="log"),
        "log": (SWITCH, None),
    }
    specs = make_specs(knobs)
    assert [one.change for one in list_dependents(specs, CASE)] == [{"count": 3, "log": True}, {"log": True}]


def test_without_a_change_that_helps_a_value_is_left_out_with_the_reason() -> None:
    specs = make_specs(DELAYED, "delay")
    assert changes_of(specs, plan_sweep(specs, CASE, ["siblings"])) == []
    assert [(row["knob"], row["value"]) for row in list_left_out(specs, CASE)] == [
        ("siblings", "1"),
        ("siblings", "50"),
    ]
    assert list_left_out(specs, CASE)[0]["reason"] == (
        "siblings counts when `delay > 0`, which does not hold for delay=0, and no change of one or two other knobs of "
        "the study helps"
    )


def test_repeated_values_come_with_what_they_are_compared_with() -> None:
    specs = make_specs(DELAYED)
    rows = plan_sweep(specs, CASE, ["siblings"])
    ids = {row["config_id"]: change for row, change in zip(_values(rows), changes_of(specs, rows), strict=True)}
    wanted = next(config_id for config_id, change in ids.items() if change.get("siblings") == 50)
    again = plan_reinforcement(specs, CASE, 1, {wanted: 2}, measured=2)
    assert changes_of(specs, again).count({"delay": 10}) == 2
    assert len(_values(again)) == 4


def test_the_forecast_counts_every_run_and_names_the_change() -> None:
    specs = make_specs(DELAYED, screening={"top": 2})
    assert sweep_effort(specs).runs >= len(plan_sweep(specs, CASE, ["siblings", "delay"]))
    assert "toy: siblings = 1, 50 are swept with delay = 10" in describe_study(specs).splitlines()


def _values(rows: list[Any]) -> list[Any]:
    return [row for row in rows if not row["is_sentinel"]]
