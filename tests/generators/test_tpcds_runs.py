"""TPC-DS on real DBMSs: rows are the generator's, DuckDB and PostgreSQL give the same answers, wrong ones show."""

from pathlib import Path
from typing import Any

import pytest
from duckdb import connect
from loaded_data import ask, copy_loaded
from measured_runs import measure_once
from shipped_specs import shipped_dbms, shipped_workload

from knobscope.generators import DSDGEN, TPCDS_TABLES
from knobscope.specs import Dbms, Workload, find_program
from knobscope.stages.prepare import Snapshot, SnapshotFailedError, prepare_snapshot

pytestmark = [
    pytest.mark.real,
    pytest.mark.fleet,
    pytest.mark.skipif(find_program(DSDGEN) is None, reason=f"no {DSDGEN.find[0]}; {DSDGEN.remedy}"),
]
#: Of scale factor 0.01; the generator draws the number of returns.
ROWS = {
    "call_center": 1,
    "catalog_page": 11718,
    "catalog_returns": 1358,
    "catalog_sales": 14313,
    "customer": 1000,
    "customer_address": 500,
    "customer_demographics": 19208,
    "date_dim": 73049,
    "household_demographics": 7200,
    "income_band": 20,
    "inventory": 23490,
    "item": 180,
    "promotion": 3,
    "reason": 1,
    "ship_mode": 20,
    "store": 1,
    "store_returns": 2810,
    "store_sales": 28810,
    "time_dim": 86400,
    "warehouse": 1,
    "web_page": 1,
    "web_returns": 679,
    "web_sales": 7212,
    "web_site": 1,
}
ANSWERS = "select query, digest from tpcds_answers"
QUERIES = {f"Q{number}" for number in range(1, 100)}


def tpcds(**changes: object) -> Workload:
    small = {"records": 10, "threads": 1, "warmup_s": 0.2, "measure_s": 20}
    return shipped_workload("tpcds", **(small | changes))


def assert_sound(record: dict[str, Any]) -> None:
    run = record["run"]
    assert run["status"] == "ok", run
    assert {check["condition"] for check in record["checks"] if check["holds"]} == {f"TPC-DS {q}" for q in QUERIES}
    operations = {row["operation"]: row for row in record["operations"]}
    assert set(operations) == QUERIES
    assert all(row["ok"] > 0 and row["failed"] == 0 and row["latency_p50_us"] > 0 for row in operations.values())


@pytest.fixture(scope="module")
def duckdb() -> Dbms:
    return shipped_dbms("duckdb")


@pytest.fixture(scope="module")
def loaded(duckdb: Dbms, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return prepare_snapshot(duckdb, tpcds(), {}, tmp_path_factory.mktemp("tpcds"))


def test_rows_are_those_of_the_generator(duckdb: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    counts = " union all ".join(f"select '{table}', count(*) from {table}" for table in TPCDS_TABLES)  # noqa: S608
    found = ask(duckdb, tpcds(), loaded, tmp_path, counts)
    assert {name: int(count) for name, count in found.items()} == ROWS
    empty = "select 'empty', count(*) from time_dim where t_meal_time = ''"  # which is not null
    assert ask(duckdb, tpcds(), loaded, tmp_path, empty) == {"empty": "50400"}


def test_queries_run_on_duckdb(duckdb: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    assert_sound(measure_once(duckdb, tpcds(threads=2), tmp_path, loaded, {"worker_threads": 1}))


def test_postgresql_gives_the_answers_of_duckdb(
    postgresql: Dbms, duckdb: Dbms, loaded: Snapshot, open_directory: Path, tmp_path: Path
) -> None:
    snapshot = prepare_snapshot(postgresql, tpcds(), {}, open_directory)
    assert set(TPCDS_TABLES) <= set(snapshot.tables.values())  # I/O will be told apart by table
    answers = ask(postgresql, tpcds(), snapshot, open_directory, ANSWERS)
    assert set(answers) == QUERIES
    assert len(set(answers.values())) >= 65  # an answer without rows is the same everywhere
    assert answers == ask(duckdb, tpcds(), loaded, tmp_path, ANSWERS)
    assert_sound(measure_once(postgresql, tpcds(), open_directory, snapshot, {"work_mem": 64}))


def test_another_answer_makes_the_run_invalid(duckdb: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    broken = copy_loaded(loaded, tmp_path)
    with connect(broken.data / "ycsb.duckdb") as database:
        database.execute("update tpcds_answers set digest = '' where query = 'Q1'")
    record = measure_once(duckdb, tpcds(), tmp_path, broken, {})
    assert record["run"]["status"] == "invalid"
    assert "TPC-DS Q1, another answer than after loading" in record["run"]["reason"]
    assert [check["condition"] for check in record["checks"] if not check["holds"]] == ["TPC-DS Q1"]


def test_a_dbms_without_such_queries_says_so(sqlite: Dbms, tmp_path: Path) -> None:
    with pytest.raises(SnapshotFailedError, match="TPC-DS cannot run on SQLite; it can on DuckDB, PostgreSQL"):
        prepare_snapshot(sqlite, tpcds(), {}, tmp_path)
