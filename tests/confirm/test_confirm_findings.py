"""Findings with known causes, put to the test on a real loop device."""

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb
import pandas as pd
import pytest

from knobscope.confirm import command, confirm_findings
from knobscope.confirm.evidence import find_runs, find_sides, read_pattern
from knobscope.devices import OpenDevice
from knobscope.errors import UserError
from knobscope.tables import TABLES, read_table, write_table

CASE = {"dbms": "toy", "device": "loop", "workload": "w"}


def insert(connection: duckdb.DuckDBPyConnection, table: str, **row: Any) -> None:
    values = [row.get(column) for column in TABLES[table]]
    connection.execute(f"INSERT INTO {table} VALUES ({', '.join('?' * len(values))})", values)  # noqa: S608


def add_run(
    connection: duckdb.DuckDBPyConnection,
    run_id: str,
    knobs: dict[str, str],
    *,
    sentinel: bool = False,
    write_bytes: int = 4096,
    depth: int = 1,
    **columns: Any,
) -> None:
    """Add a run that did random writes of one size at one depth, without flushes."""
    config = json.dumps(knobs, sort_keys=True)
    row = {"run_id": run_id, **CASE, "config_id": config, "is_sentinel": sentinel, "status": "ok", "monitor": "bpf"}
    insert(connection, "runs", **row | columns)
    if not connection.execute("SELECT count(*) FROM knob_values WHERE config_id = ?", [config]).fetchone()[0]:  # type: ignore[index]
        for knob, value in knobs.items():
            insert(connection, "knob_values", config_id=config, dbms="toy", knob=knob, value=value)
    insert(connection, "io_profile", run_id=run_id, op="write", requests=1000, sequential_requests=0, fua=0)
    insert(connection, "io_sizes", run_id=run_id, op="write", bytes=write_bytes, requests=1000)
    insert(connection, "queue_depth", run_id=run_id, queue=-1, depth=0, time_ns=10**9)
    insert(connection, "queue_depth", run_id=run_id, queue=-1, depth=depth, time_ns=10**9)


@pytest.fixture
def database(tmp_path: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """A study of knobs `page` and `writers`; the default configuration has page=64 and writers=1."""
    with duckdb.connect(str(tmp_path / "study.duckdb")) as connection:
        for table, columns in TABLES.items():
            definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f"CREATE TABLE {table} ({definition})")
        insert(connection, "device_profile", device="loop", preferred_write_bytes=65536)
        default = {"page": "64", "writers": "1"}
        add_run(connection, "s1", default, sentinel=True, write_bytes=65536, depth=8)
        add_run(connection, "s2", default, sentinel=True, write_bytes=65536, depth=8)
        add_run(connection, "small-1", default | {"page": "4"})
        add_run(connection, "small-2", default | {"page": "4"})
        add_run(connection, "broken", default | {"page": "4"}, status="failed_run")
        add_run(connection, "elsewhere", default | {"page": "4"}, device="other")
        add_run(connection, "both", {"page": "4", "writers": "9"})
        yield connection


def finding(rule: str, knob: str | None, value: str | None, **other: Any) -> dict[str, Any]:
    return {"rule": rule, **CASE, "knob": knob, "value": value, "verdict": "mismatch", "sentence": "x", **other}


def confirm(
    database: duckdb.DuckDBPyConnection, rows: list[dict[str, Any]], opened: OpenDevice | None = None
) -> list[dict[str, Any]]:
    return confirm_findings(pd.DataFrame(rows), database, {"loop": opened} if opened else {}, 1)


def test_runs_of_a_finding_change_its_knob_alone(database: duckdb.DuckDBPyConnection) -> None:
    assert find_runs(database, finding("io_size", "page", "4")) == ["small-1", "small-2"]
    assert find_runs(database, finding("io_size", "page", "64")) == ["s1", "s2"]
    assert find_runs(database, finding("io_size", "writers", "9")) == []
    assert find_runs(database, finding("io_parallelism", None, None)) == ["s1", "s2"]


def test_the_slower_side_is_to_blame(database: duckdb.DuckDBPyConnection) -> None:
    raised = finding("io_size", "page", "4", evidence='{"slower": "value"}')
    lowered = finding("io_size", "page", "4", evidence='{"slower": "baseline"}')
    assert [side.name for side in find_sides(database, raised)] == ["page=4", "the default configuration"]
    assert [side.runs for side in find_sides(database, lowered)] == [["s1", "s2"], ["small-1", "small-2"]]
    assert find_sides(database, finding("io_parallelism", None, None))[1].runs == []


def test_pattern_is_what_the_runs_did_while_busy(database: duckdb.DuckDBPyConnection) -> None:
    pattern = read_pattern(database, ["small-1", "s1"])
    assert pattern is not None
    assert (pattern.reads, pattern.writes, pattern.flushes) == (0, 2000, 0)
    assert pattern.write_sizes == {4096: 1000, 65536: 1000}
    assert pattern.depth == pytest.approx(4.5)  # half the busy time at 1, half at 8; idle time does not count
    assert pattern.write_random == 1.0


def test_forced_writes_and_streams_are_part_of_the_pattern(database: duckdb.DuckDBPyConnection) -> None:
    database.execute("UPDATE io_profile SET fua = 250, sequential_requests = 800 WHERE run_id = 'small-1'")
    insert(database, "io_profile", run_id="small-1", op="flush", requests=50)
    pattern = read_pattern(database, ["small-1"])
    assert pattern is not None
    assert pattern.flushes == 300
    assert pattern.write_random == pytest.approx(0.2)


@pytest.mark.real
def test_known_causes_are_confirmed(database: duckdb.DuckDBPyConnection, loop: OpenDevice) -> None:
    database.execute("UPDATE queue_depth SET depth = 1 WHERE depth > 1")
    small, narrow = confirm(database, [finding("io_size", "page", "4"), finding("io_parallelism", None, None)], loop)
    assert small["confirmed"] == "yes", small["confirmation"]
    assert "page=4 on loop" in small["confirmation"]
    assert "pieces of 64 KiB" in small["confirmation"]
    assert "95 % interval" in small["confirmation"]
    assert "The I/O of the default configuration reached" in small["confirmation"]
    assert narrow["confirmed"] == "yes", narrow["confirmation"]
    assert "the default configuration on loop" in narrow["confirmation"]
    assert "default configuration reached" not in narrow["confirmation"]  # it would be compared with itself
    assert list(loop.directory.iterdir()) == []


@pytest.mark.real
def test_what_cannot_be_tested_says_why(database: duckdb.DuckDBPyConnection, loop: OpenDevice) -> None:
    database.execute("UPDATE runs SET monitor = 'procfs' WHERE run_id LIKE 's_'")
    database.execute("UPDATE runs SET lost_events = 3 WHERE run_id LIKE 'small%'")
    rows = [
        finding("io_size", "page", "16"),
        finding("io_parallelism", None, None),
        finding("io_size", "page", "4"),
        finding("tier", "page", "4"),
        finding("io_size", "page", "4", verdict="insufficient"),
    ]
    found = confirm(database, rows, loop)
    assert {row["confirmed"] for row in found} == {"not_tested"}
    absent, unwatched, lossy, other, undecided = (row["confirmation"] for row in found)
    assert absent == "not tested: no run has page=16 and all other knobs as in the default configuration"
    assert "BPF watched none of its runs" in unwatched
    assert "BPF watched none of its runs" in lossy
    assert "rule tier blames no factor" in other
    assert undecided is None


def test_device_that_is_not_at_hand_is_not_tested(database: duckdb.DuckDBPyConnection) -> None:
    (found,) = confirm(database, [finding("io_size", "page", "4")])
    assert found["confirmation"] == "not tested: device loop is not at hand"


@pytest.mark.real
def test_device_without_space_is_not_tested(database: duckdb.DuckDBPyConnection, loop: OpenDevice) -> None:
    full = loop.directory / "full"
    full.write_bytes(b"x" * (loop.free_bytes - (8 << 20)))
    (found,) = confirm(database, [finding("io_size", "page", "4")], loop)
    full.unlink()
    assert found["confirmed"] == "not_tested"
    assert "a test file needs 33.6 MB" in found["confirmation"]


def test_missing_fio_is_an_error_of_the_user(
    database: duckdb.DuckDBPyConnection, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match="apt-get install fio"):
        confirm(database, [finding("io_size", "page", "4")])


def test_no_findings_are_no_error(database: duckdb.DuckDBPyConnection) -> None:
    assert confirm_findings(pd.DataFrame(columns=list(TABLES["findings"])), database, {}, 1) == []


@pytest.mark.real
def test_command_does_not_confirm_a_cause_that_is_not_there(
    tmp_path: Path, database: duckdb.DuckDBPyConnection, study: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    database.execute("UPDATE runs SET device = 'here'")
    insert(database, "device_profile", device="here", preferred_write_bytes=4096)  # 64 KiB are no reason to be slow
    database.close()
    rows = [finding("io_size", "page", "64", device="here"), finding("tier", "page", "4", device="here")]
    write_table(tmp_path / "findings.parquet", "findings", rows)
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    names = {"database": "study.duckdb", "findings": "findings.parquet", "out": "confirmed.parquet"}
    options = [part for name, file in names.items() for part in (f"--{name}", str(tmp_path / file))]
    args = parser.parse_args(["confirm", "--study", str(study), "--root", str(tmp_path), "--seconds", "1", *options])
    assert args.run(args) == 0
    found = read_table([tmp_path / "confirmed.parquet"])
    assert list(found.columns) == list(TABLES["findings"])
    assert list(found["confirmed"]) == ["no", "not_tested"]
    assert "pieces of 4 KiB" in found["confirmation"].iloc[0]
    assert "of 1 mismatches with a cause to test, 0 confirmed, 1 not, 0 not tested" in capsys.readouterr().err
    assert not (tmp_path / ".knobscope").exists()
