"""Screening runs in a study's database: which knobs change the I/O, in which case, and whether the specs agree."""

from pathlib import Path

import duckdb
import numpy as np
import pytest

from knobscope.detect import MACROS, VIEWS
from knobscope.detect.io_related import add_io_related, io_marks_comparison
from knobscope.tables import TABLES

KNOBS = {"flush": "flush", "page": "page_size", "planner": "other", "idle": "cache", "odd": "other"}


@pytest.fixture
def connection(tmp_path: Path) -> duckdb.DuckDBPyConnection:
    """Sixty screening runs on two devices; `flush` saves flushes, `odd` reads more, `page` writes more on the disk."""
    connection = duckdb.connect(str(tmp_path / "study.duckdb"))
    for table, columns in TABLES.items():
        definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        connection.execute(f'CREATE TABLE "{table}" ({definition})')
    for signature, body in MACROS.items():
        connection.execute(f"CREATE MACRO {signature} AS ({body})")
    for name, query in VIEWS.items():
        connection.execute(f"CREATE VIEW {name} AS {query}")
    for knob, mechanism in KNOBS.items():
        connection.execute("INSERT INTO knobs VALUES ('db', ?, ?, true, false)", [knob, mechanism])
    rng = np.random.default_rng(3)
    settings = {knob: rng.permutation(np.arange(60) % 3) for knob in KNOBS}
    for number in range(60):
        for knob in KNOBS:
            value = str(settings[knob][number])
            connection.execute("INSERT INTO knob_values VALUES (?, 'db', ?, ?)", [f"c{number}", knob, value])
        for device in ("disk", "flash"):
            _add_run(connection, device, number, {knob: int(settings[knob][number]) for knob in KNOBS}, rng)
    return connection


def _add_run(
    connection: duckdb.DuckDBPyConnection, device: str, number: int, values: dict[str, int], rng: np.random.Generator
) -> None:
    run, operations = f"{device}{number}", int(rng.integers(2000, 9000))  # speed says nothing about I/O per operation
    connection.execute(
        "INSERT INTO runs (run_id, phase, dbms, device, workload, config_id, is_sentinel, status, operations, monitor,"
        " lost_events) VALUES (?, 'screen', 'db', ?, 'load', ?, false, 'ok', ?, 'bpf', 0)",
        [run, device, f"c{number}", operations],
    )
    rates = {
        "flush": 0.0 if values["flush"] == 2 else 1.0,
        "read": 2.0 + 2.0 * values["odd"],
        "write": 3.0 + (3.0 * values["page"] if device == "disk" else 0.0),
    }
    for op, rate in rates.items():
        requests = int(rate * operations * np.exp(rng.normal(0, 0.1)))
        connection.execute(
            "INSERT INTO io_profile (run_id, op, requests, bytes, aligned_requests, sequential_requests)"
            " VALUES (?, ?, ?, ?, ?, ?)",
            [run, op, requests, requests * 4096, requests, requests // 2],
        )


def test_knobs_are_related_where_they_change_the_io(connection: duckdb.DuckDBPyConnection) -> None:
    add_io_related(connection, 0.05)
    rows = connection.execute(
        "SELECT device, knob, response FROM io_related WHERE verdict = 'related' ORDER BY ALL"
    ).fetchall()
    found = {(device, knob) for device, knob, _ in rows}
    assert found == {("disk", "flush"), ("disk", "odd"), ("disk", "page"), ("flash", "flush"), ("flash", "odd")}
    assert ("disk", "page", "write_bytes_per_op") in rows
    assert ("flash", "flush", "flushes_per_op") in rows
    assert connection.execute("SELECT DISTINCT runs FROM io_related").fetchall() == [(54,)]  # six came up twice


def test_verdicts_are_compared_with_the_mechanisms_of_the_specs(connection: duckdb.DuckDBPyConnection) -> None:
    add_io_related(connection, 0.05)
    compared = io_marks_comparison(connection)["db"]
    assert compared.found == ["flush", "odd", "page"]
    assert compared.marked == ["flush", "idle", "page"]
    assert compared.precision == pytest.approx(2 / 3)
    assert compared.recall == pytest.approx(2 / 3)
    assert (compared.missed, compared.unexpected) == (["idle"], ["odd"])


def test_without_an_io_profile_nothing_is_claimed(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("DELETE FROM io_profile")
    connection.execute("UPDATE runs SET monitor = 'procfs'")
    add_io_related(connection, 0.05)
    assert connection.execute("SELECT count(*) FROM io_related").fetchone() == (0,)
    assert io_marks_comparison(connection) == {}
