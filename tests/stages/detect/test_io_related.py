"""Screening runs in a study's database: which knobs change the I/O, in which case, and whether the specs agree."""

from collections.abc import Iterator
from typing import Any

import duckdb
import numpy as np
import pytest

from knobscope.stages.detect import create_schema
from knobscope.stages.detect.io_related import add_io_related, io_marks_comparison
from knobscope.tables import insert_rows

KNOBS = {"flush": "flush", "page": "page_size", "planner": "other", "idle": "cache", "odd": "other"}


@pytest.fixture(scope="module")
def screened() -> Iterator[duckdb.DuckDBPyConnection]:
    """Sixty screening runs on two devices; `flush` saves flushes, `odd` reads more, `page` writes more on the disk."""
    rng = np.random.default_rng(3)
    settings = {knob: rng.permutation(np.arange(60) % 3) for knob in KNOBS}
    tables: dict[str, list[dict[str, Any]]] = {name: [] for name in ("knobs", "knob_values", "runs", "io_profile")}
    about = {"dbms": "db", "in_study": True, "control": False}
    tables["knobs"] = [{**about, "knob": knob, "mechanism": mechanism} for knob, mechanism in KNOBS.items()]
    for number in range(60):
        values = {knob: int(settings[knob][number]) for knob in KNOBS}
        config = {"config_id": f"c{number}", "dbms": "db"}
        tables["knob_values"] += [{**config, "knob": knob, "value": value} for knob, value in values.items()]
        for device in ("disk", "flash"):
            _add_run(tables, device, number, values, rng)
    with duckdb.connect() as connection:
        create_schema(connection)
        for name, rows in tables.items():
            insert_rows(connection, name, rows)
        yield connection


@pytest.fixture
def connection(screened: duckdb.DuckDBPyConnection) -> Iterator[duckdb.DuckDBPyConnection]:
    """The database with these runs, for one test to change."""
    screened.begin()
    yield screened
    screened.rollback()


def _add_run(
    tables: dict[str, list[dict[str, Any]]], device: str, number: int, values: dict[str, int], rng: np.random.Generator
) -> None:
    run, operations = f"{device}{number}", int(rng.integers(2000, 9000))  # speed says nothing about I/O per operation
    tables["runs"].append(
        {"run_id": run, "phase": "screen", "dbms": "db", "device": device, "workload": "load",
         "config_id": f"c{number}", "is_sentinel": False, "status": "ok", "operations": operations, "monitor": "bpf",
         "lost_events": 0}
    )  # fmt: skip
    rates = {
        "flush": 0.0 if values["flush"] == 2 else 1.0,
        "read": 2.0 + 2.0 * values["odd"],
        "write": 3.0 + (3.0 * values["page"] if device == "disk" else 0.0),
    }
    for op, rate in rates.items():
        requests = int(rate * operations * np.exp(rng.normal(0, 0.1)))
        tables["io_profile"].append(
            {"run_id": run, "op": op, "requests": requests, "bytes": requests * 4096, "aligned_requests": requests,
             "sequential_requests": requests // 2}
        )  # fmt: skip


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
