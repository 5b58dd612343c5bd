"""TPC-H on real DBMSs: the rows are those of tpchgen-cli, all DBMSs give the same answers, wrong ones are noticed."""

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from loaded_data import ask, copy_loaded
from measured_runs import measure_once
from shipped_specs import shipped_dbms, shipped_workload

from knobscope.generators import TPCH_TABLES
from knobscope.specs import Dbms, Value, Workload
from knobscope.stages.prepare import Snapshot, prepare_snapshot

pytestmark = pytest.mark.real
ANSWERS = "select query, digest from tpch_answers"
QUERIES = [f"Q{number}" for number in range(1, 23)]
#: Of scale factor 0.01; those of clause 4.2.5 divided by 100, and the number of order lines that the generator draws.
ROWS = {
    "region": 5,
    "nation": 25,
    "part": 2000,
    "supplier": 100,
    "partsupp": 8000,
    "customer": 1500,
    "orders": 15000,
    "lineitem": 60175,
}


def tpch(**changes: object) -> Workload:
    small = {"records": 10, "threads": 1, "warmup_s": 0.2, "measure_s": 3}
    return shipped_workload("tpch", **(small | changes))


def assert_sound(
    dbms: Dbms, scratch: Path, snapshot: Snapshot, configuration: dict[str, Value], **changes: object
) -> None:
    """All queries have their turn in the window, which has to be longer on a busy machine."""
    for seconds in (3, 12, 48):
        record = measure_once(dbms, tpch(**changes, measure_s=seconds), scratch, snapshot, configuration)
        if record["run"]["status"] == "ok":
            break
    run = record["run"]
    assert run["status"] == "ok", run
    assert [(check["condition"], check["holds"]) for check in record["checks"]] == [
        (f"TPC-H {q}", True) for q in QUERIES
    ]
    operations = {row["operation"]: row for row in record["operations"]}
    assert sorted(operations) == sorted(QUERIES)
    assert all(row["ok"] > 0 and row["failed"] == 0 and row["latency_p50_us"] > 0 for row in operations.values())


@pytest.fixture(scope="module")
def original(sqlite: Dbms, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return prepare_snapshot(sqlite, tpch(), {}, tmp_path_factory.mktemp("tpch"))


@pytest.fixture
def loaded(original: Snapshot, tmp_path: Path) -> Snapshot:
    return copy_loaded(original, tmp_path)


@pytest.fixture
def database(loaded: Snapshot) -> Iterator[sqlite3.Connection]:
    """The snapshot itself, to look into or to break."""
    with closing(sqlite3.connect(loaded.data / "ycsb.db")) as connection:
        yield connection


def answers(database: sqlite3.Connection) -> dict[str, str]:
    return dict(database.execute(ANSWERS).fetchall())


def test_rows_are_those_of_the_generator(database: sqlite3.Connection) -> None:
    counts = {table: database.execute(f"select count(*) from {table}").fetchone()[0] for table in TPCH_TABLES}  # noqa: S608
    assert counts == ROWS
    first = database.execute("select * from lineitem where l_orderkey = 1 and l_linenumber = 1").fetchone()
    assert first[:8] == (1, 1552, 93, 1, 17, 24710.35, 0.04, 0.02)
    assert first[10:13] == ("1996-03-13", "1996-02-12", "1996-03-22")
    assert len(set(answers(database).values())) >= len(QUERIES) - 1  # an answer without rows is the same everywhere


def test_queries_run_on_sqlite(sqlite: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    assert_sound(sqlite, tmp_path, loaded, {"journal_mode": "wal"}, threads=2)


@pytest.mark.fleet
def test_duckdb_gives_the_answers_of_sqlite(database: sqlite3.Connection, tmp_path: Path) -> None:
    dbms = shipped_dbms("duckdb")
    snapshot = prepare_snapshot(dbms, tpch(), {}, tmp_path)
    assert ask(dbms, tpch(), snapshot, tmp_path, ANSWERS) == answers(database)


@pytest.mark.long
def test_postgresql_gives_the_answers_of_sqlite(
    postgresql: Dbms, database: sqlite3.Connection, open_directory: Path
) -> None:
    snapshot = prepare_snapshot(postgresql, tpch(), {}, open_directory)
    assert set(TPCH_TABLES) <= set(snapshot.tables.values())  # I/O will be told apart by table
    assert_sound(postgresql, open_directory, snapshot, {"work_mem": 64})
    assert ask(postgresql, tpch(), snapshot, open_directory, ANSWERS) == answers(database)


@pytest.mark.fleet
@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_innodb_gives_the_answers_of_sqlite(name: str, database: sqlite3.Connection, open_directory: Path) -> None:
    dbms = shipped_dbms(name)
    snapshot = prepare_snapshot(dbms, tpch(), {}, open_directory)
    assert_sound(dbms, open_directory, snapshot, {})
    assert ask(dbms, tpch(), snapshot, open_directory, ANSWERS) == answers(database)


@pytest.mark.long
def test_another_answer_makes_the_run_invalid(
    sqlite: Dbms, loaded: Snapshot, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("update lineitem set l_discount = 0.08 where l_orderkey = 1 and l_linenumber = 1")
    database.commit()
    record = measure_once(sqlite, tpch(), tmp_path, loaded, {})
    assert record["run"]["status"] == "invalid"
    assert "TPC-H Q1, another answer than after loading" in record["run"]["reason"]
    holds = {check["condition"]: check["holds"] for check in record["checks"]}
    assert not holds["TPC-H Q1"]
    assert holds["TPC-H Q2"]


@pytest.mark.long
def test_a_query_that_never_succeeds_makes_the_run_invalid(
    sqlite: Dbms, loaded: Snapshot, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute("drop table region")  # which Q2, Q5 and Q8 read
    database.commit()
    record = measure_once(sqlite, tpch(), tmp_path, loaded, {})
    assert record["run"]["status"] == "invalid"
    assert "TPC-H Q2, not once in the measured window" in record["run"]["reason"]
    broken = {check["condition"] for check in record["checks"] if not check["holds"]}
    assert broken == {"TPC-H Q2", "TPC-H Q5", "TPC-H Q8"}
