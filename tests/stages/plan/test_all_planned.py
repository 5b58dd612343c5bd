"""Plans of studies of all knobs: a few levels for every number, and what is left out is counted and listed."""

import json

import pytest
from shipped_specs import ROOT, shipped_dbms, shipped_study

from knobscope.specs import catalogue_file, read_knob_catalogue
from knobscope.stages.plan import case_space, list_left_out, plan_screening
from knobscope.stages.plan.levels import screening_levels, sweep_levels
from knobscope.workflow.forecast import describe_study


@pytest.mark.parametrize(("dbms", "least"), [("redis", 70), ("postgresql", 150)])
def test_every_knob_has_a_handful_of_levels_that_the_catalogue_allows(dbms: str, least: int) -> None:
    specs = shipped_study(f"{dbms}-all")
    space = case_space(specs, specs.cases[0])
    catalogue = read_knob_catalogue(catalogue_file(ROOT / f"specs/dbms/{dbms}.yaml"))
    described = shipped_dbms(dbms)
    assert catalogue is not None
    assert len(space.levels) >= least
    levels_of = specs.study.sampling.levels
    for name, levels in space.levels.items():
        knob, choice = specs.dbms[dbms].knobs[name], specs.study.knobs[dbms][name]
        assert space.default[name] in levels
        if knob.range is None:
            continue
        assert 2 <= len(levels) <= levels_of + len(knob.special) + 1 or choice is not None, name
        if name not in described.knobs:
            swept = sweep_levels(knob, choice, space.default[name])
            told = catalogue.knobs[name]
            assert 2 <= len(swept) <= 10, name
            assert [value for value in [*levels, *swept] if told.problem_with(value)] == [], name


def test_levels_of_a_wide_range_are_orders_of_magnitude_around_the_default() -> None:
    specs = shipped_study("redis-all")
    space = case_space(specs, specs.cases[0])
    assert space.levels["slowlog-log-slower-than"] == [1000, 10000, 100000]
    assert space.levels["tracking-table-max-keys"] == [100_000, 1_000_000, 10_000_000]
    assert sweep_levels(space.dbms.knobs["repl-backlog-ttl"], None, 3600) == [360, 1000, 3600, 10000, 36000]
    assert sweep_levels(space.dbms.knobs["latency-monitor-threshold"], None, 0) == [0, 1, 10, 100, 1000]


def test_screening_sets_every_knob_and_none_that_is_left_out() -> None:
    specs = shipped_study("redis-all")
    rows = plan_screening(specs, specs.cases[0], 0)
    configurations = [json.loads(row["configuration"]) for row in rows if not row["is_sentinel"]]
    assert len(configurations) == specs.study.sampling.runs_per_round
    for configuration in configurations:
        assert set(configuration) == set(specs.study.knobs["redis"])
        assert not set(configuration) & set(specs.left_out["redis"])
    moved = {name for one in configurations for name in one if one[name] != specs.dbms["redis"].knobs[name].default}
    assert moved == set(specs.study.knobs["redis"]), "every knob is turned in some run"


def test_knobs_that_are_left_out_are_listed_and_counted() -> None:
    specs = shipped_study("redis-all")
    rows = [row for row in list_left_out(specs, specs.cases[0]) if "value" not in row]
    assert {row["knob"]: row["reason"] for row in rows} == specs.left_out["redis"]
    varied, count = len(specs.study.knobs["redis"]), len(rows)
    line = f"redis: {varied} knobs are varied; `all` leaves out {count} of {varied + count}, which the report lists"
    assert count > 10
    assert any(text.startswith(line) for text in describe_study(specs).splitlines())
    named = shipped_study("redis-quick")
    assert "`all`" not in describe_study(named)


def test_levels_of_the_largest_integers_stay_within_their_range() -> None:
    catalogue = read_knob_catalogue(catalogue_file(ROOT / "specs/dbms/mariadb.yaml"))
    assert catalogue is not None
    knob = catalogue.knobs["myisam_mmap_size"]
    assert knob.range is not None
    assert knob.range[1] == 2**64 - 1
    levels = screening_levels(knob, None, 3, knob.default)
    assert [level for level in levels if knob.problem_with(level)] == []
