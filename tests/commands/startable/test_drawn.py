"""What a study draws is tried on generated systems of which is known what they refuse; plans keep to what is found."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from knobscope.commands.startable.bisecting import Outcome
from knobscope.commands.startable.drawn import Tally, read_value, try_study
from knobscope.errors import UserError
from knobscope.specs import RefusedSetting, SpecErrors, StudySpecs, Value, load_study, refuse_settings
from knobscope.stages.plan import case_space, list_left_out, plan_screening, plan_sweep
from knobscope.stages.plan.search_space import search_space
from knobscope.workflow.forecast import describe_left_out

ROOT = Path(__file__).parents[3]

STUDY = """\
name: mine
description: Values that the server refuses, alone and together.
dbms: [mariadb]
devices: [memory]
workloads: {ycsb-a: }
knobs:
  mariadb:
    innodb_doublewrite:
    innodb_flush_method: CHOICE
    innodb_flush_neighbors:
    innodb_lru_scan_depth: {range: [100, 10000]}
    innodb_purge_batch_size: {range: [1, 5000]}
    innodb_read_io_threads: {range: [1, 64]}
    sort_buffer_size:
baseline:
  mariadb: {log_bin: true}
sampling: {method: lhs, runs_per_round: 20, max_rounds: 2, levels: 3}
"""
REFUSED: list[dict[str, Value]] = [
    {"innodb_flush_method": "littlesync"},
    {"innodb_read_io_threads": 64},
    {"innodb_doublewrite": False, "innodb_purge_batch_size": 5000},
]


def answer(configuration: dict[str, Value]) -> Outcome:
    """Refuse REFUSED, and round a depth down to a multiple of 16."""
    for one in REFUSED:
        if one.items() <= configuration.items():
            return Outcome(f"cannot have {one}")
    depth = int(configuration["innodb_lru_scan_depth"])
    return Outcome(changed={"innodb_lru_scan_depth": str(depth // 16 * 16)} if depth % 16 else {})


def load(shelf: Path, found: list[RefusedSetting] | None = None, choice: str = "") -> StudySpecs:
    path = shelf / "studies/mine.yaml"
    path.write_text(STUDY.replace("CHOICE", choice))
    refused = [one.model_dump(mode="json", exclude_defaults=True) for one in found or []]
    record = {"dbms": "mariadb", "version": "10.11.19", "tried": "2026-01-01", "knobs": {}, "refused": refused}
    (shelf / "startable/mariadb-10.11.json").write_text(json.dumps(record))
    return load_study(path, shelf, runnable=False)


def try_out(specs: StudySpecs, budget: int = 1000) -> tuple[Tally, list[RefusedSetting]]:
    found: list[RefusedSetting] = []
    return try_study(specs, "mariadb", answer, budget, found.append), found


def configurations(specs: StudySpecs) -> list[dict[str, Value]]:
    (case,) = specs.cases
    rows = [*plan_screening(specs, case, 0), *plan_screening(specs, case, 1)]
    rows += plan_sweep(specs, case, list(specs.study.knobs["mariadb"]))
    return [json.loads(row["configuration"]) for row in rows]


def test_everything_that_is_refused_is_found_and_the_rest_runs(shelf: Path) -> None:
    tally, found = try_out(load(shelf))
    assert [one.values for one in found if one.becomes is None and one.values not in REFUSED] == []
    assert all(one in [refused.values for refused in found] for one in REFUSED)
    rounded = {one.values["innodb_lru_scan_depth"]: one.becomes for one in found if one.becomes is not None}
    assert rounded[100] == 96
    assert all(value // 16 * 16 == becomes for value, becomes in rounded.items() if isinstance(value, int))
    assert (tally.is_complete, tally.running) == (True, tally.drawn)
    assert 1 <= tally.failed < tally.tried
    assert tally.trials < 3 * tally.drawn


def test_plans_keep_to_what_was_found(shelf: Path) -> None:
    before = configurations(load(shelf))
    assert any(not answer(one).is_well for one in before)
    _, found = try_out(load(shelf))
    specs = load(shelf, found)
    after = configurations(specs)
    assert len(after) >= 2 * 20
    assert [one for one in after if not answer(one).is_well] == []
    assert {one["innodb_doublewrite"] for one in after} == {True, False}
    assert 5000 in {one["innodb_purge_batch_size"] for one in after}
    assert try_out(specs)[1] == []


def test_what_is_left_out_is_reported_with_the_words_of_the_server(shelf: Path) -> None:
    specs = load(shelf, try_out(load(shelf))[1])
    told = {(row["knob"], row["value"]): row["reason"] for row in list_left_out(specs, specs.cases[0])}
    assert told["innodb_flush_method", "littlesync"] == f"mariadb refuses it: cannot have {REFUSED[0]}"
    assert told["innodb_lru_scan_depth", "100"] == "mariadb takes it for 96, which is measured instead"
    assert "together with innodb_purge_batch_size = 5000" in told["innodb_doublewrite", "false"]
    lines = describe_left_out(specs)
    assert f"mariadb: innodb_read_io_threads = 64 is left out: mariadb refuses it: cannot have {REFUSED[1]}" in lines
    assert any("values of its knobs are taken for others" in line for line in lines)


def test_tuners_and_exports_keep_to_it_too(shelf: Path) -> None:
    specs = load(shelf, try_out(load(shelf))[1])
    space = search_space(specs, specs.cases[0], [], None, with_durability=True)
    (method,) = (one for one in space.parameters if one.name == "innodb_flush_method")
    assert "fsync" in method.choices
    assert "littlesync" not in method.choices
    assert space.complete({"innodb_lru_scan_depth": 100})["innodb_lru_scan_depth"] == 96
    assert space.allows(space.default)
    for one in REFUSED:
        assert not space.allows({**space.default, **one})


def test_a_spent_budget_is_reported(shelf: Path) -> None:
    tally, _ = try_out(load(shelf), budget=12)
    assert (tally.is_complete, tally.trials) == (False, 12)


def test_a_default_configuration_that_fails_ends_the_search(shelf: Path) -> None:
    specs = load(shelf)
    with pytest.raises(UserError, match="default configuration of mine: no"):
        try_study(specs, "mariadb", lambda _: Outcome("no"), 100, print)


def test_what_was_found_with_other_defaults_limits_no_plan(shelf: Path) -> None:
    here = RefusedSetting(values={"innodb_read_io_threads": 64}, words="no", beside={"log_bin": True})
    there = RefusedSetting(values={"innodb_flush_neighbors": 2}, words="no", beside={"log_bin": False})
    knobs = load(shelf, [here, there]).dbms["mariadb"].knobs
    assert knobs["innodb_read_io_threads"].refused == {64: "no"}
    assert knobs["innodb_flush_neighbors"].refused == {}


def test_a_refused_value_that_a_study_names_is_an_error(shelf: Path) -> None:
    found = [RefusedSetting(values={"innodb_flush_method": "nosync"}, words="unsafe", beside={"log_bin": True})]
    with pytest.raises(SpecErrors) as caught:
        load(shelf, found, "{values: [nosync, fsync]}")
    (problem,) = caught.value.problems
    assert (problem.line, problem.key) == (9, "knobs.mariadb.innodb_flush_method.values.0")
    assert problem.found == "'nosync', which mariadb 10.11.19 refuses (unsafe)"


def test_a_value_that_becomes_another_one_step_by_step_settles(shelf: Path) -> None:
    specs = load(shelf)
    steps = [
        RefusedSetting(values={"innodb_lru_scan_depth": one}, words="", becomes=other)
        for one, other in ((100, 98), (98, 96))
    ]
    dbms = refuse_settings(specs.dbms["mariadb"], steps, {})
    assert dbms.knobs["innodb_lru_scan_depth"].settle(100) == 96
    levels = case_space(replace(specs, dbms={"mariadb": dbms}), specs.cases[0]).levels["innodb_lru_scan_depth"]
    assert (96 in levels, 98 in levels, 100 in levels) == (True, False, False)


def test_answers_become_values_of_their_knob(shelf: Path) -> None:
    knobs = load(shelf).dbms["mariadb"].knobs
    assert read_value(knobs["innodb_lru_scan_depth"], "96") == 96
    assert read_value(knobs["innodb_lru_scan_depth"], "ON") is None
    assert read_value(knobs["innodb_flush_method"], "O_DIRECT") == "O_DIRECT"
    assert read_value(knobs["innodb_flush_neighbors"], "2") == 2
    assert read_value(knobs["innodb_doublewrite"], "OFF") is None
