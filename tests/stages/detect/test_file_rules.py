"""Rules about files: interference of reads and writes, and order that is lost on the way."""

import json
import math
import shutil
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest
from generated_studies import USES, Study, Truth, Use

from knobscope.stages.detect.interference import measure_interference

Make = Callable[..., Study]
Judge = Callable[..., pd.DataFrame]  # as fixture `judge_one`
LN2 = math.log(2)


@pytest.fixture(scope="session")
def make_study(make_study: Make) -> Make:
    """Of three blocks: what each run shows by itself has an interval from there on."""
    return partial(make_study, repeats=3)


def the_row(findings: pd.DataFrame, **where: str) -> Any:
    for name, value in where.items():
        findings = findings[findings[name] == value]
    assert len(findings) == 1
    return next(findings.itertuples())


def evidence_of(row: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(row.evidence)
    return found


# read_write_interference


def test_reads_that_suffer_from_writes_are_found_with_an_honest_gain(make_study: Make) -> None:
    # 4000 reads in ten seconds of two threads, half of them 5 ms instead of 2.5 ms: a quarter of the time, all told.
    study = make_study(interference=LN2, read_us=2500.0)
    row = the_row(study.judge("read_write_interference"))
    assert row.verdict == "mismatch"
    found = evidence_of(row)
    assert 1 + found["slowdown"] == pytest.approx(2, rel=0.06)
    assert found["slowdown_low"] < 1 < found["slowdown_high"] * 1.03
    assert row.penalty == pytest.approx(1 / (1 - 0.25), rel=0.04)
    assert found["gain_low"] < row.penalty - 1 < found["gain_high"]
    assert found["read_mostly"] == ["customers"]
    assert found["written"] == ["log files", "orders", "journal"]
    assert (
        "customers is read and hardly written (0 % of the requests), on the device that also takes writes to log "
        "files, orders and" in row.sentence
    )
    assert "would make the workload at most 3" in row.sentence


MOVED: dict[str, tuple[dict[str, Any], str, str]] = {
    # name: what moving the table does, and how the study was made; the verdict; words of the sentence
    "gain": (
        {"interference": LN2, "moved": 0.2},
        "mismatch",
        "moving customers to a device of its own (other): ",
    ),
    "no gain": ({"interference": LN2, "moved": 0.0, "repeats": 8}, "none", "gains nothing that matters: moving"),
    "gain unforeseen": ({"interference": 0.0, "moved": 0.2}, "mismatch", "own (other): "),
    "too few runs": ({"interference": LN2, "moved": 0.0, "noise": 0.2}, "insufficient", "too few runs show what is"),
}


@pytest.mark.parametrize("kind", MOVED)
def test_a_table_that_was_moved_is_judged_by_what_was_measured(make_study: Make, kind: str) -> None:
    fields, verdict, words = MOVED[kind]
    knob, gain = "device.table.customers", fields["moved"]
    fields = {name: value for name, value in fields.items() if name != "moved"}
    truth = {(knob, "other"): Truth(throughput=gain)}
    row = the_row(make_study(read_us=2500.0, knobs=(knob,), truth=truth, **fields).judge("read_write_interference"))
    assert row.verdict == verdict, row.sentence
    assert words in row.sentence.replace("\u00a0", " ")
    if verdict == "mismatch":
        assert row.penalty == pytest.approx(math.exp(gain), rel=0.05)
        assert "at most" not in row.sentence


#: Studies that differ in how reads wait for writes.
SHARED: dict[str, dict[str, Any]] = {
    "small gain": {"interference": LN2, "read_us": 50.0},
    "faster": {"interference": -LN2, "read_us": 5000.0},
    "metadata": {
        "interference": LN2,
        "uses": (Use("metadata", "metadata", reads=4000), Use("t", "data", "orders", writes=3000)),
    },
    "always written, slow": {"pauses": False, "interference": LN2, "read_us": 300.0},
    "always written, fast": {"pauses": False, "interference": LN2, "read_us": 11.0},
}


def judge_shared(judge_one: Judge, name: str) -> Any:
    return the_row(judge_one("read_write_interference", list(SHARED.values()), SHARED[name]))


def test_a_gain_that_is_too_small_is_no_mismatch(judge_one: Judge) -> None:
    row = judge_shared(judge_one, "small gain")
    assert row.verdict == "none"
    assert evidence_of(row)["q_value"] < 1e-3
    assert "Separating them would gain nothing that matters" in row.sentence


def test_reads_that_are_faster_while_writing_are_none(judge_one: Judge) -> None:
    assert judge_shared(judge_one, "faster").verdict == "none"


APART: list[tuple[Any, ...]] = [
    ((Use("t", "data", "orders", reads=4000, writes=400),), "no table or file is read much and written little"),
    ((Use("t", "data", "orders", reads=4000),), "nothing is written to the device"),
    (
        (Use("t", "data", "orders", reads=100), *USES[:1]),
        "no table or file is read much and written little",
    ),  # hardly any reads
]


@pytest.mark.parametrize(("uses", "said"), APART)
def test_what_is_not_shared_does_not_interfere(judge_one: Judge, uses: tuple[Use, ...], said: str) -> None:
    cases = [{"uses": one} for one, _ in APART]
    row = the_row(judge_one("read_write_interference", cases, {"uses": uses}, interference=LN2, read_us=5000.0))
    assert row.verdict == "none"
    assert said in row.sentence


def test_a_file_system_reads_nothing_of_its_own_that_could_be_separated(judge_one: Judge) -> None:
    assert judge_shared(judge_one, "metadata").verdict == "none"


UNTOLD: list[tuple[Any, ...]] = [
    ({"pauses": False}, "in fewer than three blocks the default configuration has periods both"),
    ({"uses": ()}, "no run of the default configuration recorded which files"),
    ({"uses": (*USES, Use("unknown", "unknown", writes=20000))}, "% of the requests went to unknown files"),
]


@pytest.mark.parametrize(("fields", "said"), UNTOLD)
def test_interference_without_evidence_is_insufficient(judge_one: Judge, fields: dict[str, Any], said: str) -> None:
    cases = [one for one, _ in UNTOLD]
    row = the_row(judge_one("read_write_interference", cases, fields, interference=LN2, read_us=5000.0))
    assert row.verdict == "insufficient"
    assert said in row.sentence


def test_a_block_is_one_measurement_of_interference_however_many_runs_it_has(make_study: Make, tmp_path: Path) -> None:
    """What its data and its device add is in all of its runs: more of these tell nothing of other blocks."""
    database = shutil.copy(make_study(interference=LN2, read_us=2500.0).database, tmp_path)
    with duckdb.connect(database) as connection:
        connection.execute(
            "UPDATE io_series SET latency_mean_us = 2 * io_series.latency_mean_us FROM runs "
            "WHERE runs.run_id = io_series.run_id "
            "AND block_id = (SELECT min(block_id) FROM runs WHERE phase = 'sweep') AND (4 * t_s)::INTEGER % 2 = 1"
        )
        (row,) = measure_interference(connection).to_dict("records")
    assert row["runs"] > 3
    assert row["estimate"] == pytest.approx(LN2 + LN2 / 3, abs=0.1)
    # Student's t of three blocks, one of them ln 2 above the other two.
    assert row["high"] - row["estimate"] == pytest.approx(4.303 * LN2 / 3, rel=0.15)


def test_a_device_that_writes_all_the_time_is_compared_with_its_profile(judge_one: Judge) -> None:
    """The profile reads in 22 us. What takes 27 times as long waits for writes; what takes as long proves nothing."""
    row = judge_shared(judge_one, "always written, slow")
    assert row.verdict == "mismatch"
    found = evidence_of(row)
    assert found["compared_with"] == "alone" and found["q_value"] is None
    assert found["read_us_without_writes"] == pytest.approx(1e6 / 45000)
    assert 1 + found["slowdown"] == pytest.approx(600 / (1e6 / 45000), rel=0.1)
    assert "fewer than three runs have enough moments both with and without writes to compare; " in row.sentence
    assert "in the device's profile" in row.sentence
    assert judge_shared(judge_one, "always written, fast").verdict == "insufficient"


# access_pattern


def with_orders(table: str, **changed: float) -> tuple[Use, ...]:
    return tuple(replace(use, **changed) if use.table == table else use for use in USES)  # type: ignore[arg-type]


def files_of(findings: pd.DataFrame) -> pd.DataFrame:
    found = [json.loads(text) for text in findings["evidence"]]
    return findings.assign(file=[one.get("file") for one in found], op=[one.get("op") for one in found])


#: Studies that differ in the order of calls and of requests.
ORDERS: dict[str, dict[str, Any]] = {
    "lost": {"uses": with_orders("customers", logical=0.97, device=0.05)},
    "merged": {"uses": with_orders("customers", logical=0.97, device=0.05, call_bytes=1024)},
    "put in order": {"uses": with_orders("orders", logical=0.05, device=0.95)},
    "a little lost": {"uses": with_orders("customers", logical=0.85, device=0.6)},
    "no calls": {"calls": False},
    "few": {"uses": (Use("t", "data", "orders", reads=8, logical=1.0, device=0.0),)},
}


def judge_order(judge_one: Judge, name: str) -> pd.DataFrame:
    return files_of(judge_one("access_pattern", list(ORDERS.values()), ORDERS[name]))


def test_order_that_is_lost_on_the_way_is_found_for_its_file_only(judge_one: Judge) -> None:
    findings = judge_order(judge_one, "lost")
    bad = the_row(findings, verdict="mismatch")
    assert (bad.file, bad.op) == ("customers", "read")
    assert evidence_of(bad)["difference"] == pytest.approx(-0.92, abs=0.02)
    assert "Reads of customers with ycsb-a on nvme-0 are sequential in system calls (97 % in order)" in bad.sentence
    assert bad.sentence.endswith("in order): the order is lost between the system calls and the device.")
    others = findings[findings["verdict"] == "none"][["file", "op"]]
    assert set(others.itertuples(index=False, name=None)) == {
        ("orders", "read"), ("orders", "write"), ("log files", "write"), ("journal", "write"),
    }  # fmt: skip


@pytest.mark.parametrize(("ratio", "says"), [(0.5, "reach 50 % of the rate of"), (1.1, "are as fast as")])
def test_an_order_that_the_device_does_not_mind_has_no_penalty(make_study: Make, ratio: float, says: str) -> None:
    """Reads in order are fewer and larger, too: with PostgreSQL on a drive without a gap a lost order costs 5.3x."""
    study = make_study(**ORDERS["lost"], seed=round(10 * ratio))  # equal studies are made and judged once
    with duckdb.connect(str(study.database)) as connection:
        connection.execute("UPDATE device_profile SET random_sequential_ratio = ?", [ratio])
    bad = the_row(files_of(study.judge("access_pattern")), verdict="mismatch")
    assert bad.penalty == pytest.approx(2) if ratio < 1 else pd.isna(bad.penalty)
    assert bad.sentence.endswith(
        f"{says} sequential ones of the same size; this rule does not measure what fewer and larger reads in order "
        "would gain."
    )


def test_calls_that_are_merged_have_kept_their_order(judge_one: Judge) -> None:
    """As those of a journal that is begun anew with every commit: one request, and the next one starts elsewhere."""
    row = the_row(judge_order(judge_one, "merged"), file="customers")
    assert row.verdict == "none"
    assert row.sentence.endswith(
        "calls of 1 KiB are merged into requests of 4 KiB, and keep their order within each request."
    )


def test_the_reverse_is_found_and_costs_nothing(judge_one: Judge) -> None:
    bad = judge_order(judge_one, "put in order")
    bad = bad[bad["verdict"] == "mismatch"]
    assert sorted(bad["op"]) == ["read", "write"]
    assert bad["penalty"].isna().all()
    assert bad["sentence"].str.contains("puts them in order on the way").all()


def test_a_lesser_change_of_order_is_no_mismatch(judge_one: Judge) -> None:
    row = the_row(judge_order(judge_one, "a little lost"), file="customers")
    assert row.verdict == "none"
    assert evidence_of(row)["q_value"] < 0.01


LONG_SCANS = 200_000  # calls of a run, which are several in each operation

DECLARED: list[tuple[Any, ...]] = [
    ("sequential", 0.05, 0.05, "mismatch", "calls"),  # what IOscope saw: a scan whose calls are random
    (None, 0.05, 0.05, "none", None),
    ("random", 0.05, 0.05, "none", None),
    ("sequential", 0.05, 0.6, "mismatch", "calls"),
    ("sequential", 0.05, 0.95, "none", None),  # on the way it is put in the order that was asked for
    (None, 0.05, 0.95, "mismatch", "device"),
    ("sequential", 0.95, 0.05, "mismatch", "device"),
    ("random", 0.95, 0.05, "none", None),
    ("random", 0.95, 0.95, "mismatch", "calls"),
    (None, 0.95, 0.95, "none", None),
    ("random", 0.05, 0.95, "mismatch", "device"),
    ("sequential", 0.6, 0.05, "mismatch", "device"),
    ("sequential", 0.6, 0.6, "none", None),
    ("sequential", 0.4, 0.6, "mismatch", "calls"),  # most are out of order, though not all
]


def judge_declared(judge_one: Judge, declared: str | None, calls: float, device: float) -> pd.DataFrame:
    cases = {
        one[1:3]: {"uses": with_orders("customers", logical=one[1], device=one[2], reads=LONG_SCANS)}
        for one in DECLARED
        if one[0] == declared
    }
    return files_of(judge_one("access_pattern", list(cases.values()), cases[calls, device], read_order=declared))


@pytest.mark.parametrize(("declared", "calls", "device", "verdict", "changed_at"), DECLARED)
def test_a_declared_order_replaces_that_of_the_calls(
    judge_one: Judge, declared: str | None, calls: float, device: float, verdict: str, changed_at: str | None
) -> None:
    findings = judge_declared(judge_one, declared, calls, device)
    row = the_row(findings, file="customers")
    assert (row.verdict, evidence_of(row)["changed_at"]) == (verdict, changed_at)
    assert evidence_of(row)["declared_order"] == declared
    assert (findings["verdict"] == "mismatch").sum() == (verdict == "mismatch"), "orders are in between, logs no data"


def test_a_scan_whose_calls_are_random_is_reported_as_such(judge_one: Judge) -> None:
    row = the_row(judge_declared(judge_one, "sequential", 0.05, 0.05), file="customers")
    assert row.sentence.startswith(
        "Reads of customers with ycsb-a on nvme-0 are requested in order by the workload, random in system calls ("
    )
    assert row.sentence.endswith(
        "in order): the DBMS itself loses the order, for example by following an index whose order differs from that "
        "of the table."
    )


def test_order_cannot_be_judged_without_system_calls(judge_one: Judge) -> None:
    row = the_row(judge_order(judge_one, "no calls"))
    assert row.verdict == "insufficient"
    assert "no system call on a file was seen" in row.sentence


def test_few_requests_tell_nothing_of_their_order(judge_one: Judge) -> None:
    row = the_row(judge_order(judge_one, "few"))
    assert row.verdict == "insufficient"
    assert "no file has enough system calls and requests" in row.sentence


@pytest.mark.long
def test_rules_about_files_are_wrong_in_few_studies_without_truth(make_study: Make) -> None:
    """Noise only: what a rule says in five studies is none, but for what chance may bring once."""
    wrong = {"read_write_interference": 0, "access_pattern": 0}
    for seed in range(1, 6):
        study = make_study(seed=seed, read_us=5000.0, knobs=("page",))
        for rule in wrong:
            wrong[rule] += int((study.judge(rule)["verdict"] == "mismatch").sum())
    assert max(wrong.values()) <= 1
