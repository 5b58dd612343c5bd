"""Which questions findings ask: of effects, of gaps between tiers, of configurations as they are."""

import json
import math
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path
from typing import Any

import duckdb
import pytest

from knobscope.specs import Case, StudySpecs, load_study
from knobscope.specs.models.study import Budget, Remeasure
from knobscope.stages.plan import case_space
from knobscope.stages.remeasure.effort import _count_round, count_remeasuring_runs, expect_remeasuring_runs
from knobscope.stages.remeasure.experiment import _list_changed, _share_references
from knobscope.stages.remeasure.properties import layered_devices, what_if_devices
from knobscope.stages.remeasure.questions import (
    TOGETHER,
    Question,
    ask_fastest,
    ask_headline,
    ask_questions,
    what_if_number,
)
from knobscope.stages.remeasure.shares import Amount
from knobscope.statistics.looks import LOOKS
from knobscope.tables import TABLES

ROOT = Path(__file__).parents[3]
OFF, FULL = {"synchronous": "off"}, {"synchronous": "full"}


@pytest.fixture(scope="module")
def specs() -> StudySpecs:
    return load_study(ROOT / "specs/studies/paper-sqlite.yaml", ROOT)


@pytest.fixture
def connection() -> Iterator[duckdb.DuckDBPyConnection]:
    """Return a study in which the default takes 1,000 us on the disk and 3,000 us on the SSD; a value, a tenth."""
    with duckdb.connect() as made:
        made.execute("CREATE TABLE plan (block_id TEXT, config_id TEXT, configuration TEXT)")
        made.execute(
            "CREATE TABLE sweep_runs (dbms TEXT, device TEXT, workload TEXT, block_id TEXT, config_id TEXT, "
            "reference_id TEXT, is_sentinel BOOLEAN, knob TEXT, value TEXT, status TEXT, throughput_ops DOUBLE, "
            "session TEXT, run_id TEXT AS (block_id || config_id))"
        )
        made.execute("CREATE TABLE unusual_groups (block_id TEXT, session TEXT)")
        made.execute("CREATE TABLE set_aside_runs (run_id TEXT)")
        made.execute(
            "CREATE TABLE effects (dbms TEXT, device TEXT, workload TEXT, knob TEXT, value TEXT, metric TEXT, "
            "estimate DOUBLE, standard_error DOUBLE, degrees DOUBLE, q_value DOUBLE, durability BOOLEAN)"
        )
        made.execute(
            f"CREATE TABLE fastest ({', '.join(f'{name} {kind}' for name, kind in TABLES['fastest'].items())})"
        )
        for device, micros in (("hdd-7200", 1000.0), ("nvme-consumer", 3000.0)):
            case = ["sqlite", device, "ycsb-a"]
            for noise in (0.98, 1.0, 1.02):
                block = f"{device} {noise}"
                made.execute("INSERT INTO plan VALUES (?, 'f', ?), (?, 'o', ?)", [block, dump(FULL), block, dump(OFF)])
                default = [*case, block, "f", "f", True, None, None, "ok", noise * 1e6 / micros, "s"]
                value = [*case, block, "o", "f", False, "synchronous", "off", "ok", noise * 1e7 / micros, "s"]
                made.executemany("INSERT INTO sweep_runs VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", [default, value])
            effect = [*case, "synchronous", "off", "throughput_ops", math.log(10), 0.02, 4, 0.001, True]
            made.execute("INSERT INTO effects VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)", effect)
        yield made


def dump(configuration: dict[str, Any]) -> str:
    return json.dumps(configuration)


def finding(rule: str, knob: str | None = None, value: str | None = None, **evidence: Any) -> dict[str, Any]:
    case = {"dbms": "sqlite", "device": "nvme-consumer", "workload": "ycsb-a"}
    return {"rule": rule, **case, "knob": knob, "value": value, "verdict": "mismatch", "penalty": None,
            "evidence": json.dumps(evidence)}  # fmt: skip


def test_a_busy_device_asks_what_the_default_configuration_waits_for(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    (asked,) = ask_questions([finding("default_profile")], specs, connection, most=4, what_if=4)
    assert asked.is_level
    assert asked.is_default
    assert (asked.configuration, asked.other_device, asked.remainder.mean) == (FULL, None, 0)


def test_a_slower_tier_asks_for_what_it_takes_more_than_the_lower_one(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    tiers = {"lower_device": "hdd-7200", "higher_device": "nvme-consumer"}
    default, value = finding("slower_tier", **tiers), finding("slower_tier", "synchronous", "off", **tiers)
    first, second = ask_questions([default, value], specs, connection, most=4, what_if=4)
    assert (first.is_level, first.is_default, first.other_device) == (True, True, "hdd-7200")
    assert first.remainder.mean == pytest.approx(1000, rel=0.01)
    assert (second.is_level, second.is_default, second.configuration) == (True, False, OFF)
    assert second.remainder.mean == pytest.approx(100, rel=0.01)


def test_a_block_that_is_no_part_of_the_effects_says_nothing_of_the_lower_tier(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    slower = finding("slower_tier", lower_device="hdd-7200", higher_device="nvme-consumer")
    connection.execute("UPDATE sweep_runs SET throughput_ops = throughput_ops / 4 WHERE block_id = 'hdd-7200 1.02'")
    connection.execute("INSERT INTO set_aside_runs SELECT run_id FROM sweep_runs WHERE block_id = 'hdd-7200 1.02'")
    (asked,) = ask_questions([slower], specs, connection, most=4, what_if=4)
    assert asked.remainder.mean == pytest.approx(1000, rel=0.02)


def test_an_effect_and_the_speed_of_the_same_value_are_two_questions(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    slower = finding("slower_tier", "synchronous", "off", lower_device="hdd-7200", higher_device="nvme-consumer")
    effect = finding("flush", "synchronous", "off")
    questions = ask_questions([effect, slower, effect], specs, connection, most=4, what_if=4)
    assert [(one.is_level, one.findings) for one in questions] == [(False, (0, 2)), (True, (1,))]


@pytest.mark.parametrize(("threads", "factor", "clients"), [(4, None, 4), (1, None, 1), (1, 8, 8)])
def test_a_question_knows_how_many_clients_share_the_time(
    threads: int, factor: int | None, clients: int, specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    workload = specs.workloads["ycsb-a"].model_copy(update={"threads": threads})
    if factor is not None:
        setting = dump({**OFF, "workload.threads": factor})
        connection.execute("UPDATE plan SET configuration = ? WHERE config_id = 'o'", [setting])
    (asked,) = ask_questions(
        [finding("flush", "synchronous", "off")],
        replace(specs, workloads={**specs.workloads, "ycsb-a": workload}),
        connection,
        most=4,
        what_if=4,
    )
    assert asked.clients == clients


def test_the_headline_is_measured_again_once(specs: StudySpecs, connection: duckdb.DuckDBPyConnection) -> None:
    """The largest clear effect is of a risky value on the SSD; of the others the largest clear one is on the disk."""
    made = "INSERT INTO effects SELECT dbms, device, workload, knob, value, metric, ?, 0.02, 4, ?, ? FROM effects"
    connection.execute("UPDATE effects SET estimate = 2.5 WHERE device = 'nvme-consumer'")
    connection.execute(f"{made} WHERE device = 'hdd-7200'", [0.3, 0.01, False])
    connection.execute(f"{made} WHERE device = 'nvme-consumer' AND durability", [0.9, 0.2, False])
    headlines = ask_headline(specs, connection, [])
    assert [(row.case.device, row.findings, row.followed) for row in headlines] == [
        ("nvme-consumer", (), False),
        ("hdd-7200", (), False),
    ]
    assert ask_headline(specs, connection, headlines) == []
    assert ask_headline(changed(specs, findings=0), connection, []) == []
    connection.execute("UPDATE effects SET knob = 'workload.threads' WHERE device = 'nvme-consumer'")
    assert [row.case.device for row in ask_headline(specs, connection, [])] == ["hdd-7200"], "the head names knobs"


def test_what_is_about_no_value_and_no_time_is_left_to_other_experiments(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    findings = [finding("io_parallelism"), finding("tail", "synchronous", "off")]
    assert ask_questions(findings, specs, connection, most=4, what_if=4) == []


def test_an_effect_is_asked_for_with_what_the_sweep_saw(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    (asked,) = ask_questions([finding("flush", "synchronous", "off")], specs, connection, most=4, what_if=4)
    assert asked.followed
    assert asked.swept_effect == Amount(pytest.approx(math.log(10)), pytest.approx(0.02), 4)
    connection.execute("UPDATE effects SET standard_error = 1 WHERE device = 'nvme-consumer'")
    (unclear,) = ask_questions([finding("flush", "synchronous", "off")], specs, connection, most=4, what_if=4)
    assert unclear.swept_effect is None
    tiers = {"lower_device": "hdd-7200", "higher_device": "nvme-consumer"}
    connection.execute("UPDATE effects SET standard_error = .02, estimate = 3 WHERE device = 'nvme-consumer'")
    (gap,) = ask_questions([finding("tier", "synchronous", "off", **tiers)], specs, connection, most=4, what_if=4)
    assert (gap.case.device, gap.other_device) == ("nvme-consumer", "hdd-7200")
    assert gap.swept_effect is not None
    assert gap.swept_effect.mean == pytest.approx(3 - math.log(10))


def test_on_a_device_without_a_model_all_but_gaps_between_tiers_are_followed(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    without = {"emulate": None, "path": "/srv"}
    real = {name: specs.devices[name].model_copy(update=without) for name in ("hdd-7200", "nvme-consumer")}
    with_real = replace(specs, devices={**specs.devices, **real})
    tiers = {"lower_device": "hdd-7200", "higher_device": "nvme-consumer"}
    gap = finding("tier", "synchronous", "off", **tiers)
    rows = [finding("default_profile"), finding("slower_tier", **tiers), finding("flush", "synchronous", "off"), gap]
    asked = ask_questions(rows, with_real, connection, most=4, what_if=4)
    told = [(one.findings, one.is_level, one.other_device, one.followed) for one in asked]
    assert told == [
        ((0,), True, None, True),
        ((1,), True, "hdd-7200", True),
        ((2,), False, None, True),
        ((3,), False, "nvme-consumer", False),
    ]


def test_the_costliest_on_modelled_devices_are_followed_and_the_rest_is_only_measured_again(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    slower = {"lower_device": "hdd-7200", "higher_device": "nvme-consumer"}
    cheap, dear = finding("flush", "synchronous", "off"), finding("slower_tier", "synchronous", "off", **slower)
    rows = [{**cheap, "penalty": 0.1}, {**dear, "penalty": 0.9}, {**finding("default_profile"), "penalty": 0.05}]
    questions = ask_questions(rows, specs, connection, most=4, what_if=1)
    told = [(one.findings, one.is_level, one.followed) for one in questions]
    assert told == [((1,), True, True), ((0,), False, False)]
    (only,) = ask_questions(rows, specs, connection, most=1, what_if=4)
    assert only.findings == (1,)
    (again,) = ask_questions(rows, specs, connection, most=4, what_if=0)
    assert (again.findings, again.followed) == ((0,), False)


def test_no_more_runs_are_made_than_were_announced(specs: StudySpecs) -> None:
    """Three cases, so three references, and values of one share up to four runs of it: the others go to one of them."""
    more = 2 + 6  # the headlines, and the two fastest of each case
    count = count_remeasuring_runs(changed(specs, findings=8, repeats=4, what_if=0))
    assert count == 4 * LOOKS * (8 + more + 3 + 13 // 4)
    one = count_remeasuring_runs(changed(specs, findings=1, repeats=3, what_if=0))
    assert one == 3 * LOOKS * (1 + more + 3 + 6 // 4)
    assert count_remeasuring_runs(changed(specs, findings=0, what_if=4)) == 0
    followed = count_remeasuring_runs(changed(specs, findings=4, what_if=2, repeats=3))
    devices = specs.devices.values()
    most = max(len(what_if_devices(device)) + len(layered_devices(device)) for device in devices)
    assert followed == 3 * (LOOKS * (4 + more + 3 + 9 // 4) + most * (2 + 2))


@pytest.mark.parametrize("references", [1, 2, 3])
def test_effects_share_references_in_no_way_that_takes_more_runs(references: int) -> None:
    for effects in range(12):
        ways = combinations_with_replacement(range(references), effects)
        runs = [effects + sum(-(-count // TOGETHER) for count in Counter(way).values()) for way in ways]
        assert max(runs) == _count_round(effects, references)


def test_causes_that_runs_leave_open_come_after_mismatches(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    """Where the effect is clear, the rule blames a property and a what-if device lacks it."""
    off = ("synchronous", "off")
    left_open = finding("flush", *off) | {"verdict": "insufficient", "effect": 9.0}
    on_disk = finding("io_size", *off) | {"device": "hdd-7200", "penalty": 2.0}
    first, second = ask_questions([left_open, on_disk], specs, connection, most=4, what_if=None)
    assert (first.findings, second.findings) == ((1,), (0,))
    assert (second.case.device, second.followed, second.blamed) == ("nvme-consumer", True, {"flush"})
    (merged,) = ask_questions([left_open, finding("intuition", *off)], specs, connection, most=1, what_if=None)
    assert (merged.findings, merged.blamed) == ((1, 0), {"flush"})
    for row in ({"rule": "intuition"}, {"rule": "io_sequentiality"}, {"value": "normal"}, {"verdict": "none"}):
        assert ask_questions([left_open | row], specs, connection, most=4, what_if=None) == []
    assert ask_questions([left_open], specs, connection, most=4, what_if=0) == []
    sqlite = specs.dbms["sqlite"]
    throttle = sqlite.knobs["synchronous"].model_copy(update={"mechanism": "throttle"})
    throttled = sqlite.model_copy(update={"knobs": {**sqlite.knobs, "synchronous": throttle}})
    excused = replace(specs, dbms={"sqlite": throttled})
    assert ask_questions([left_open], excused, connection, most=4, what_if=None) == [], "it could be no mismatch"
    connection.execute("UPDATE effects SET q_value = 0.2")
    assert ask_questions([left_open], specs, connection, most=4, what_if=None) == []


def test_by_default_what_a_rule_blames_is_taken_from_modelled_devices_alone(
    specs: StudySpecs, connection: duckdb.DuckDBPyConnection
) -> None:
    off = ("synchronous", "off")
    rows = [finding("default_profile"), finding("intuition", *off), finding("flush", *off), finding("io_size", *off)]
    (asked,) = ask_questions(rows, specs, connection, most=4, what_if=None)
    assert (asked.findings, asked.followed, asked.blamed) == ((1, 2, 3), True, {"flush", "write_unit"})
    assert (asked.asks("flush"), asked.asks("everything")) == (True, False)
    (spent,) = ask_questions([finding("io_sequentiality", *off)], specs, connection, most=4, what_if=None)
    assert spent.blamed == {"everything"}
    held_by = {name: finding("default_profile", held_by=name) for name in ("flush", "units", "depth")}
    (default,) = ask_questions([held_by["flush"], held_by["depth"]], specs, connection, most=4, what_if=None)
    assert (default.findings, default.is_level, default.blamed) == ((0, 1), True, {"flush"})
    (default,) = ask_questions([held_by["units"]], specs, connection, most=4, what_if=None)
    assert default.blamed == {"write_unit"}
    assert ask_questions([held_by["depth"]], specs, connection, most=4, what_if=None) == []
    (unblamed,) = ask_questions(rows[:2], specs, connection, most=4, what_if=None)
    assert not unblamed.followed
    (every,) = ask_questions(rows[2:], specs, connection, most=4, what_if=1)
    assert every.followed
    assert every.asks("everything")
    (none,) = ask_questions(rows, specs, connection, most=4, what_if=0)
    assert not none.followed
    real = specs.devices["nvme-consumer"].model_copy(update={"emulate": None, "path": "/srv"})
    with_real = replace(specs, devices={**specs.devices, "nvme-consumer": real})
    (on_real,) = ask_questions(rows, with_real, connection, most=4, what_if=None)
    assert not on_real.followed


def test_a_forecast_holds_what_is_asked_by_default_and_a_budget_asks_for_nothing(specs: StudySpecs) -> None:
    again = 3 * LOOKS * (4 + 2 + 6 + 3 + 9 // 4)  # with the headlines and the fastest configurations
    three = replace(specs, rules={name: specs.rules[name] for name in ("flush", "io_size", "io_sequentiality", "tier")})
    assert (
        count_remeasuring_runs(changed(three, findings=4, repeats=3)) == again + 3 * (4 + 3) * 4
    )  # one of them a layer
    flush = replace(specs, rules={"flush": specs.rules["flush"]})
    assert count_remeasuring_runs(changed(flush, findings=4, repeats=3)) == again + 3 * (4 + 3) * 2
    limited = replace(specs, study=specs.study.model_copy(update={"budget": Budget(runs=400)}))
    assert count_remeasuring_runs(changed(limited, findings=4, repeats=3)) == again
    assert what_if_number(changed(limited, what_if=2)) == 2


def test_one_mismatch_takes_one_look_at_it_at_the_fastest_and_at_the_devices_of_its_rule(specs: StudySpecs) -> None:
    flush = replace(specs, rules={name: specs.rules[name] for name in ("flush", "intuition")})
    case = next(case for case in specs.cases if case.device == "nvme-consumer")
    own, devices = 1 + 1 + 2, 2 * (1 + 1)  # next to the default each; without the flush, and with writes merged
    assert expect_remeasuring_runs(changed(flush, repeats=3), case) == 3 * (own + devices)
    assert expect_remeasuring_runs(changed(flush, repeats=3, what_if=0), case) == 3 * own
    assert expect_remeasuring_runs(changed(flush, findings=0), case) == 0
    assert sum(expect_remeasuring_runs(flush, case) for case in flush.cases) < count_remeasuring_runs(flush)


def changed(specs: StudySpecs, **remeasure: int) -> StudySpecs:
    return replace(specs, study=specs.study.model_copy(update={"remeasure": Remeasure(**remeasure)}))


def test_a_configuration_that_two_questions_are_about_is_measured_once() -> None:
    """The fastest safe configuration may be the value of a finding."""
    case, default = Case("sqlite", "ssd", "ycsb-a"), {"journal_mode": "delete", "synchronous": "full"}
    wal, off = {**default, "journal_mode": "wal"}, {**default, "synchronous": "off"}
    finding = Question(case, "journal_mode", "wal", wal, default, (0,))
    safe = Question(case, None, '{"journal_mode": "wal"}', wal, default, (), risk="none")
    fastest = Question(case, None, '{"synchronous": "off"}', off, default, (), risk="any")
    (group,) = _share_references([finding, safe, fastest])
    assert group == [finding, safe, fastest]
    assert _list_changed(group) == [wal, off]


def test_the_fastest_are_compared_with_the_default(specs: StudySpecs, connection: duckdb.DuckDBPyConnection) -> None:
    case = specs.cases[0]
    default = dict(case_space(specs, case).default)
    faster = {**default, "synchronous": "off"}
    connection.execute(
        "INSERT INTO fastest (dbms, device, workload, risk, changes, configuration) VALUES (?, ?, ?, 'any', ?, ?)",
        [case.dbms, case.device, case.workload, '{"synchronous": "off"}', json.dumps(faster)],
    )
    (asked,) = ask_fastest(specs, connection)
    assert (asked.case, asked.risk, asked.value) == (case, "any", '{"synchronous": "off"}')
    assert (asked.configuration, asked.reference, asked.followed) == (faster, default, False)


def test_what_a_gap_is_compared_with_counts_once_in_new_runs_and_sweep() -> None:
    other, swept = Amount(-math.log(2), 0.067, 6), Amount(-math.log(2) + 0.24, 0.067, 6)
    case = Case("sqlite", "nvme-consumer", "ycsb-a")
    gap = Question(case, "synchronous", "off", {}, {}, (0,), "hdd-7200", other, swept=swept)
    both = gap.with_sweep(Amount(-math.log(2) + 0.12, 0.041, 11))
    assert both.mean == pytest.approx(0.153, abs=0.005)
    assert both.error == pytest.approx(math.hypot(0.035, 0.067), abs=0.001)
    assert gap.swept_effect is not None and gap.swept_effect.mean == pytest.approx(0.24)
