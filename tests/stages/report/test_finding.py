"""Mismatches with one cause are one, and one is told as a report for a DBMS's developers."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from shipped_specs import shipped_dbms

from knobscope.commands.finding.command import find_readers
from knobscope.commands.finding.markdown import describe_mismatch, inert
from knobscope.machine_code import Reader
from knobscope.specs import StudySpecs, ask_version
from knobscope.stages.detect import merge_findings
from knobscope.study_data.study import StudyData


def finding(knob: str | None, rule: str, penalty: float | None, **more: Any) -> dict[str, Any]:
    row = {"dbms": "sqlite", "device": "ssd", "workload": "ycsb-a", "knob": knob, "value": "1", "rule": rule}
    return {**row, "verdict": "mismatch", "penalty": penalty, "cause": None, "confirmed": "not_tested", **more}


def test_findings_with_one_cause_are_one_mismatch() -> None:
    rows = [
        finding("sync", "flush", 2.0, cause="flush"),
        finding("sync", "flush", 5.0, cause="flush", device="hdd"),
        finding("sync", "tier", 3.0),  # names no cause, and its knob has just one
        finding("page", "io_size", 1.5, cause="write_size"),
    ]
    merged = merge_findings(rows)
    assert [(one.number, one.knob, one.cause, one.worst["penalty"], len(one.findings)) for one in merged] == [
        (1, "sync", "flush", 5.0, 3),
        (2, "page", "write_size", 1.5, 1),
    ]
    assert merged[0].names("device") == ["hdd", "ssd"]


def test_a_rule_that_names_the_cause_speaks_for_a_mismatch() -> None:
    """What an experiment found to be the cause of an unexpected effect is told by the rule that asks for it."""
    rows = [
        finding("size", "intuition", 100.0, cause="write_size", confirmed="found"),
        finding("size", "io_size", 24.0, cause="write_size", confirmed="yes"),
        finding("sync", "flush", 50.0, cause="flush"),
    ]
    merged = merge_findings(rows)
    assert [(one.knob, one.names("rule")) for one in merged] == [
        ("size", ["io_size", "intuition"]),
        ("sync", ["flush"]),
    ]


def test_findings_with_several_causes_or_none_stay_apart() -> None:
    rows = [
        finding("sync", "flush", 2.0, cause="flush"),
        finding("sync", "io_size", 1.8, cause="write_size"),
        finding("sync", "tier", 1.7),  # of which of the two nobody knows
        finding("sync", "intuition", 1.6),
        finding(None, "io_parallelism", 1.4, cause="parallelism"),
        finding(None, "default_profile", 1.3),
    ]
    assert [one.names("rule") for one in merge_findings(rows)] == [[row["rule"]] for row in rows]


def test_opposite_effects_of_one_change_are_two_mismatches() -> None:
    def moved(ratio: float, workload: str, value: str = "1", step: int = 1) -> dict[str, Any]:
        evidence = json.dumps({"throughput_ratio": ratio, "step": step})
        more = {"cause": "flush", "workload": workload, "value": value, "evidence": evidence}
        return finding("sync", "flush", max(ratio, 1 / ratio), **more)

    rows = [
        moved(1.38, "reads"),
        moved(0.71, "writes"),
        moved(0.8, "writes", "2", 2),  # the same way as the smaller step
        moved(0.9, "mixed", "-1", -2),  # lowering it is slower: the same way as raising it is faster
        moved(0.85, "reads", "0", -1),
    ]
    merged = [{(row["workload"], row["value"]) for row in one.findings} for one in merge_findings(rows)]
    assert merged == [
        {("writes", "1"), ("writes", "2")},
        {("reads", "1"), ("reads", "0"), ("mixed", "-1")},
    ]


def test_what_an_experiment_refuted_is_no_mismatch() -> None:
    rows = [
        finding("sync", "flush", 2.0, cause="flush", confirmed="no"),
        finding("sync", "tier", 1.7),
        finding("page", "io_size", None, verdict="none"),
    ]
    merged = merge_findings(rows)
    assert [(one.worst["rule"], one.cause) for one in merged] == [("tier", None)]


@pytest.fixture
def told(study: Path, specs: StudySpecs) -> str:
    with StudyData.open(study, specs) as data:
        mismatches = merge_findings(data.rows("SELECT * FROM findings"))
        return describe_mismatch(data, mismatches[0], Path("specs/studies/x.yaml"))


def test_a_mismatch_is_reported_with_all_that_its_reader_needs(told: str, study: Path, specs: StudySpecs) -> None:
    with StudyData.open(study, specs) as data:
        worst = merge_findings(data.rows("SELECT * FROM findings"))[0].worst
        version = data.value("SELECT any_value(dbms_version) FROM runs")
        runs = data.rows(
            "SELECT run_id FROM runs_behind WHERE side = 'value' AND dbms = ? AND device = ? AND workload = ? "
            "AND knob = ? AND value = ?",
            *(worst[name] for name in ("dbms", "device", "workload", "knob", "value")),
        )
    assert told.startswith(f"# sqlite: `{worst['knob']}`: ")
    assert worst["sentence"] in told
    assert f"`{worst['knob']}`: {specs.dbms['sqlite'].knobs[worst['knob']].description}\n" in told
    assert f"- sqlite {version}" in told
    assert runs and all(f"`{run['run_id']}`" in told for run in runs)
    assert "snakemake --cores all --config study=specs/studies/x.yaml" in told
    tables = [block.splitlines() for block in told.split("\n\n") if block.startswith("|")]
    assert len(tables) == 3  # where it shows, the runs, the devices
    assert all(line.count("|") == table[0].count("|") for table in tables for line in table)
    assert "\u202f" not in told
    assert "None" not in told


def test_an_effect_of_a_mismatch_is_clear_whatever_an_interval_of_95_percent_holds(
    changed_study: Callable[..., Path], specs: StudySpecs
) -> None:
    wide = "UPDATE findings SET effect = -0.06, effect_low = -0.12, effect_high = 0.01 WHERE verdict = 'mismatch'"
    with StudyData.open(changed_study(wide), specs) as data:
        mismatch = merge_findings(data.rows("SELECT * FROM findings"))[0]
        told = describe_mismatch(data, mismatch, Path("specs/studies/x.yaml"))
    table = told.split("## Where it shows")[1].split("##")[0]
    assert "6 % slower (95 % interval 12 % slower to 1 % faster)" in table
    assert "no clear effect" not in table


def test_functions_of_the_server_that_read_the_knob(study: Path, specs: StudySpecs, told: str) -> None:
    readers = [Reader(4096, "flush_log", ("flush_log", "sync_file", "fsync")), Reader(8192, "0x2000", ())]
    with StudyData.open(study, specs) as data:
        mismatch = merge_findings(data.rows("SELECT * FROM findings"))[0]
        with_code = describe_mismatch(data, mismatch, Path("specs/studies/x.yaml"), (), readers)
    assert "| `flush_log` | `sync_file` > `fsync` |\n| `0x2000` | – |" in with_code
    assert f"refer to the variable of `{mismatch.knob}`" in with_code
    assert "In the server's code" not in told


def test_a_server_of_another_version_says_nothing_of_the_one_that_was_measured(
    changed_study: Callable[..., Path], specs: StudySpecs, capsys: pytest.CaptureFixture[str]
) -> None:
    redis = shipped_dbms("redis").model_copy(update={"name": "sqlite"})  # that of the study
    installed = ask_version(redis.version or [], redis.programs, redis.paths)
    for measured, is_told in (("0.1", False), (installed, True)):
        database = changed_study("UPDATE runs SET dbms_version = ?", parameters=[measured])
        with StudyData.open(database, specs) as data:
            assert bool(find_readers(data, redis, "appendfsync", None)) == is_told
    assert f"is version {installed}; expected sqlite 0.1, which the study measured" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("Watch [x] (`watch: [waits]`)", "Watch \\[x] (`watch: [waits]`)"),
        ("`a: [b]` [x](y)", "`a: \\[b]` \\[x](y)"),
        ("a ` b [x](y)", "a ' b \\[x](y)"),
        ("\\`[x](y)`", "\\`\\[x](y)`"),
        ("`` [x](y) ``", "`` \\[x](y) ``"),
    ],
)
def test_foreign_text_is_no_link_and_code_has_no_backslash(line: str, shown: str) -> None:
    assert inert(line) == shown
