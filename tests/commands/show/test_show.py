"""`knobscope show` on results as the stages write them."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb
import pytest
from json_documents import read_document

from knobscope.cli import main
from knobscope.commands.show.page import draw_sparkline
from knobscope.stages.detect import create_schema
from knobscope.stages.measure import RunStore, write_block
from knobscope.tables import PlanRow, RunRecord, RunRow, write_table

BLOCK = "sqlite/local-disk/ycsb-a/sweep-0-0"
DEFAULT = {"synchronous": "full", "cache_size": -2000}


def record_of(run_id: str, position: int, **more: Any) -> RunRecord:
    run: RunRow = {
        "run_id": run_id,
        "study": "tiny",
        "block_id": BLOCK,
        "dbms": "sqlite",
        "device": "local-disk",
        "workload": "ycsb-a",
        "dbms_version": "3.46",
        "tier": "nvme_ssd",
        "position": position,
        "is_sentinel": position == 0,
        "config_id": f"c{position}",
        "started_at": "2026-11-22T05:00:00.123",
        "session": "s",
        "machine": "Linux",
        "status": "ok",
        "window_s": 1.0,
        "throughput_ops": 100.0 + position,
        "operations": 100,
        "failed_operations": 0,
        "latency_p50_us": 5.0,
        "monitor": "bpf",
        "aligned_to_bytes": 16384,
    }
    run |= more  # type: ignore[typeddict-item]
    return {
        "run": run,
        "effective_values": [{"knob": "synchronous", "requested": "off", "effective": "0"}],
        "intervals": [{"t_s": t / 4, "ops": ops} for t, ops in enumerate((0, 50, 100))],
        "io_profile": [{"op": "write", "requests": 12345, "bytes": 2**20, "aligned_share": 0.5}],
    }


@pytest.fixture
def results(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    results = tmp_path / "results/tiny"
    failed = {"status": "failed_start", "reason": "no <answer>", "log_tail": "FATAL: one\nFATAL: two"}
    records = [record_of("aa11", 0), record_of("ab22", 1), record_of("cc33", 2, **failed)]
    store = RunStore(results / "store")
    for record in records:
        store.save(record["run"]["run_id"], record)
    write_block(records, results / "sqlite/local-disk/ycsb-a/runs/sweep-0-0")
    rows: list[PlanRow] = [
        {"block_id": BLOCK, "config_id": f"c{n}", "is_sentinel": n == 0, "configuration": json.dumps(values)}
        for n, values in enumerate([DEFAULT, {**DEFAULT, "synchronous": "off"}, {**DEFAULT, "cache_size": -500}])
    ]
    write_table(results / "sqlite/local-disk/ycsb-a/plan/sweep-0.parquet", "plan", rows)
    return results


def test_a_run_is_shown_with_its_knobs_and_neighbours(results: Path, prints: Callable[..., str]) -> None:
    lines = prints("show", "ab22").splitlines()
    assert lines[0] == "run ab22 of study tiny"
    assert [word for line in lines if "synchronous" in line for word in line.split()] == [
        *("*", "synchronous", "off", "0", "full")
    ]
    assert any(line.split() == ["cache_size", "-2000", "not", "read", "-2000"] for line in lines)
    assert "operations per interval  ▁▅█  0 to 100" in lines
    assert any(line.split() == ["write", "12,345", "1.0", "50", "%", "–"] for line in lines)
    block = [line.split() for line in lines[-3:]]
    assert block == [
        ["0", "default", "aa11", "100.0", "ok"],
        [">", "1", "c1", "ab22", "101.0", "ok"],
        ["2", "c2", "cc33", "–", "failed_start"],
    ]


def test_a_run_on_a_device_without_one_property_differs_from_the_default_configuration(
    results: Path, prints: Callable[..., str]
) -> None:
    device = "local-disk-if-flush"
    more = {"device": device, "block_id": f"sqlite/{device}/ycsb-a/explain-1", "phase": "explain"}
    RunStore(results / "store").save("dd44", record_of("dd44", 1, **more))
    lines = prints("show", "dd44").splitlines()
    assert any(line.split() == ["*", "synchronous", "off", "0", "full"] for line in lines)


def test_a_failed_run_tells_why(results: Path, prints: Callable[..., str]) -> None:
    shown = prints("show", "cc33", "--study", results)
    assert "status failed_start: no <answer>" in shown
    assert "  FATAL: one\n  FATAL: two" in shown


def test_a_run_that_detect_set_aside_is_not_shown_as_ok(results: Path, prints: Callable[..., str]) -> None:
    reason = "it stalled: 9 times slower than the median run of its configuration"
    with duckdb.connect(str(results / "study.duckdb")) as connection:
        create_schema(connection)
        connection.execute("INSERT INTO runs (run_id, status, reason) VALUES ('ab22', 'invalid', ?)", [reason])
        connection.execute("INSERT INTO set_aside_runs (run_id, guard, reason) VALUES ('ab22', 'stalled', ?)", [reason])
    lines = prints("show", "ab22").splitlines()
    assert f"status invalid: {reason}" in lines
    assert lines[-2].split() == [">", "1", "c1", "ab22", "–", "invalid"]
    document = read_document("show", prints("show", "aa11", "--json"))
    assert [row["status"] for row in document["block"]] == ["ok", "invalid", "failed_start"]


def test_the_begin_of_an_id_is_enough_and_a_wrong_one_is_answered(
    results: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for study in ("tiny", "specs/studies/tiny.yaml", "results/tiny"):
        assert main(["show", "cc", "--study", study]) == 0
        assert "run cc33" in capsys.readouterr().out
    for asked, answer in (
        ("a", "several runs begin 'a' in results/tiny; did you mean aa11 or ab22?"),
        ("ab23", "no run 'ab23' in results/tiny; did you mean ab22"),
        ("zzzz", "no run 'zzzz' in results/tiny"),
    ):
        assert main(["show", asked]) == 2
        assert answer in capsys.readouterr().err
    assert main(["show", "ab22", "--study", "other"]) == 2
    assert (
        "no results of a study 'other'; expected a folder with store in it, or one of those in results: tiny"
        in capsys.readouterr().err
    )


def test_a_page_is_safe_html(results: Path) -> None:
    page = results / "run.html"
    assert main(["show", "cc33", "--html", str(page)]) == 0
    assert "white-space: pre-wrap" in page.read_text(), "a long reason is not cut off"
    text = page.read_text()
    assert "no &lt;answer&gt;" in text
    assert "<answer>" not in text


def test_a_run_as_a_document(results: Path, prints: Callable[..., str]) -> None:
    document = read_document("show", prints("show", "cc33", "--json"))
    assert document["run"]["reason"] == "no <answer>"
    assert document["configuration"] == {"synchronous": "full", "cache_size": -500}
    assert document["default"] == DEFAULT
    assert [(row["run_id"], row["status"]) for row in document["block"]] == [
        ("aa11", "ok"), ("ab22", "ok"), ("cc33", "failed_start")
    ]  # fmt: skip


def test_a_sparkline_starts_at_zero() -> None:
    assert draw_sparkline([0, 1, 2, 4]) == "▁▃▅█"
    assert draw_sparkline([0, 0]) == "▁▁"
    assert draw_sparkline([]) == ""


def test_what_an_operation_waited_for_is_shown_where_it_was_watched(results: Path, prints: Callable[..., str]) -> None:
    row = {"thread_class": "session", "threads": 2, "waits": 1, "longest_us": 1.0}
    waits = [
        {**row, "reason": "flush", "time_us": 30_000.0, "through_us": 0.0},
        {**row, "reason": "network", "time_us": 90_000.0, "through_us": 0.0},
        *(
            {**row, "thread_class": name, "reason": "cpu", "time_us": 1_000.0, "through_us": 0.0}
            for name in ("knobscope", "knobscope-clock", "knobscopers")
        ),
        {**row, "thread_class": "checkpointer", "reason": "network", "time_us": 50_000.0, "through_us": 0.0},
    ]
    record = {**record_of("feed00", 9, throughput_ops=100.0, waits_s=0.5), "waits": waits, "wait_chains": []}
    RunStore(results / "store").save("feed00", record)  # type: ignore[arg-type]
    shown = prints("show", "feed00")
    assert "sessions spend on an operation: 600 µs, of which 600 µs flush" in shown
    assert "session (2 threads, 0.12 s, of that 0.09 s waiting for a client): 100 % flush" in shown
    assert "checkpointer (2 threads, 0.05 s, of that 0.05 s waiting to be woken): nothing" in shown
    classes = [line.split()[0] for line in shown.splitlines() if line.startswith("  ") and "thread" in line]
    assert classes == ["session", "knobscopers", "checkpointer"], "knobscope's own threads are not the DBMS's"


def test_sessions_that_pass_operations_on_are_listeners_as_in_the_report(
    results: Path, prints: Callable[..., str]
) -> None:
    """A single run does not show it: `detect` compares all runs of a case."""
    row = {"thread_class": "session", "threads": 1, "waits": 1, "longest_us": 1.0, "through_us": 0.0}
    waits = [{**row, "reason": "cpu", "time_us": 1_000.0}, {**row, "reason": "network", "time_us": 90_000.0}]
    chain = {"thread_class": "slapd", "via_class": "session", "reason": "network", "links": 1, "time_us": 1.0}
    record = {**record_of("feed00", 9, waits_s=0.5), "waits": waits, "wait_chains": [chain]}
    RunStore(results / "store").save("feed00", record)  # type: ignore[arg-type]
    assert "sessions spend on an operation" in prints("show", "feed00")
    with duckdb.connect(str(results / "study.duckdb")) as connection:
        create_schema(connection)
        connection.execute(
            "INSERT INTO runs (run_id, dbms, device, workload) VALUES ('ab22', 'sqlite', 'local-disk', 'ycsb-a')"
        )
        connection.execute("INSERT INTO waits (run_id, thread_class) VALUES ('ab22', 'listener')")
    shown = prints("show", "feed00")
    assert "session" not in shown[shown.index("what threads did") :]
    lines = shown.replace("\xa0", " ").splitlines()
    assert "  listener (1 thread, 0.091 s, of that 0.09 s waiting to be woken): 100 % CPU" in lines
    document = read_document("show", prints("show", "feed00", "--json"))
    assert {row["thread_class"] for row in document["waits"]} == {"listener"}
    assert document["wait_chains"][0]["via_class"] == "listener"


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"run_id": "dd44"}, "found a value that cannot be used (KeyError"),
        ({**record_of("dd44", 1)["run"], "block_id": "/other/x/y/z"}, "found block '/other/x/y/z'"),
        ({**record_of("dd44", 1)["run"], "block_id": "a/../../z"}, "found block 'a/../../z'"),
        ({**record_of("dd44", 1)["run"], "started_at": None}, "found a value that cannot be used (TypeError"),
    ],
)
def test_a_run_that_nobody_measured_is_refused_in_a_sentence(
    run: dict[str, Any], words: str, results: Path, refuses: Callable[..., str]
) -> None:
    RunStore(results / "store").save("dd44", {"run": run})  # type: ignore[typeddict-item]
    assert words in refuses("show", "dd44")
