"""No value of the sweep disappears in silence: what is not planned is named with the reason."""

import json

import pytest
from shipped_specs import shipped_study

from knobscope.stages.plan import list_dependents, list_left_out, plan_sweep
from knobscope.stages.plan.levels import sweep_levels
from knobscope.workflow.forecast import describe_left_out


@pytest.mark.parametrize("name", ["cassandra-io", "mariadb-io", "postgresql-io", "sqlite-io", "redis-io"])
def test_every_value_is_planned_or_named(name: str) -> None:
    specs = shipped_study(name)
    case = specs.cases[0]
    dbms, chosen = specs.dbms[case.dbms], specs.study.knobs[case.dbms]
    usual = {knob: dbms.knobs[knob].canonical(dbms.knobs[knob].default) for knob in chosen}
    usual |= {knob: value for knob, value in specs.study.baseline.get(case.dbms, {}).items() if knob in chosen}
    asked = {
        (knob, json.dumps(value))
        for knob in chosen
        for value in sweep_levels(dbms.knobs[knob], chosen[knob], usual[knob])
        if value != usual[knob]
    }
    rows = plan_sweep(specs, case, list(chosen))
    planned = {
        (knob, json.dumps(value))
        for row in rows
        if not row["is_sentinel"]
        for knob, value in json.loads(row["configuration"]).items()
        if knob in usual and value != usual[knob]
    }
    left_out = {(row["knob"], row["value"]) for row in list_left_out(specs, case)}
    unplanned = {(knob, value.strip('"')) for knob, value in asked - planned}
    assert left_out == unplanned


def test_the_reason_names_the_rule_and_the_values() -> None:
    specs = shipped_study("postgresql-io")
    reasons = {row["knob"]: row["reason"] for row in list_left_out(specs, specs.cases[0])}
    assert reasons["wal_level"] == (
        "wal_level requires `wal_level != 'minimal' or max_wal_senders == 0`, which does not hold for "
        "max_wal_senders=10, wal_level='minimal', and no change of one or two other knobs of the study helps"
    )


@pytest.mark.parametrize("name", ["mariadb-io", "mongodb-io", "sqlite-io"])
def test_what_a_change_of_other_knobs_allows_is_not_left_out(name: str) -> None:
    specs = shipped_study(name)
    assert not [row for row in list_left_out(specs, specs.cases[0]) if "no change" in row["reason"]]
    assert list_dependents(specs, specs.cases[0])


def test_a_dry_run_names_each_value_once() -> None:
    lines = describe_left_out(shipped_study("postgresql-io"))
    assert len(lines) == len(set(lines)) == 9
    assert all(line.startswith("postgresql: wal_") and " is left out: " in line for line in lines)
