"""TPC-C on real DBMSs: what is loaded, what runs, and that its consistency conditions are checked."""

import sqlite3
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import duckdb
import pytest
from loaded_data import copy_loaded
from measured_runs import measure_once
from shipped_specs import shipped_dbms, shipped_workload

from knobscope.devices import OpenDevice
from knobscope.generators import TPCC_TABLES
from knobscope.specs import Dbms, Workload
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import Snapshot, prepare_snapshot
from knobscope.watch import open_watch

pytestmark = pytest.mark.real
KINDS = {"NEW_ORDER": 0.45, "PAYMENT": 0.43, "ORDER_STATUS": 0.04, "DELIVERY": 0.04, "STOCK_LEVEL": 0.04}
CONDITIONS = 4


def tpcc(**changes: object) -> Workload:
    small = {"records": 2, "threads": 3, "warmup_s": 0.2, "measure_s": 1.5, "parameters": {"scale": 100}}
    return shipped_workload("tpcc", **(small | changes))


def assert_sound(record: dict[str, Any]) -> None:
    run = record["run"]
    assert run["status"] == "ok", run
    assert [check["holds"] for check in record["checks"]] == [True] * CONDITIONS
    operations = {row["operation"]: row for row in record["operations"]}
    assert set(operations) == set(KINDS)
    assert run["failed_operations"] <= 0.01 * run["operations"]  # conflicts that ten attempts did not settle
    done = sum(row["ok"] for row in operations.values())
    assert run["operations"] == done
    for name, share in KINDS.items():
        assert operations[name]["ok"] == pytest.approx(share * done, abs=5 * (done * share) ** 0.5 + 5), name
    orders = operations["NEW_ORDER"]
    assert orders["per_minute"] == pytest.approx(60 * orders["ok"] / run["window_s"])
    assert orders["latency_p50_us"] > 0


@pytest.fixture(scope="module")
def original(sqlite: Dbms, tmp_path_factory: pytest.TempPathFactory) -> Snapshot:
    return prepare_snapshot(sqlite, tpcc(), {}, tmp_path_factory.mktemp("tpcc"))


@pytest.fixture
def loaded(original: Snapshot, tmp_path: Path) -> Snapshot:
    return copy_loaded(original, tmp_path)


@pytest.fixture
def database(loaded: Snapshot) -> Iterator[sqlite3.Connection]:
    """The snapshot itself, to look into or to break."""
    with closing(sqlite3.connect(loaded.data / "ycsb.db")) as connection:
        yield connection


def one(database: sqlite3.Connection, sql: str) -> Any:
    return database.execute(sql).fetchone()[0]


def counted(record: dict[str, Any], column: str, source: str = "client") -> Counter[tuple[str, str, str]]:
    """Return calls or rows of statements by (operation, statement, table)."""
    rows = [row for row in record["statements"] if row["source"] == source]
    return Counter({(row.get("operation", ""), row["statement"], row["table_name"]): row[column] for row in rows})


def changed(record: dict[str, Any], source: str) -> dict[tuple[str, str], float]:
    """Return the shares of (statement, table) in the rows that were inserted, updated or deleted."""
    sums: Counter[tuple[str, str]] = Counter()
    for (_, statement, table), rows in counted(record, "rows", source).items():
        if statement != "select":
            sums[statement, table] += rows
    return {key: rows / sums.total() for key, rows in sums.items() if rows}


def test_conditions_hold_on_sqlite(sqlite: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    record = measure_once(sqlite, tpcc(), tmp_path, loaded, {"journal_mode": "wal", "synchronous": "off"})
    assert_sound(record)
    assert_statements(record)


def assert_statements(record: dict[str, Any], threads: int = 3) -> None:
    """Compare the statements with what the transactions consist of.

    Each session has one transaction in flight at an end of the window, which is half in it; an attempt that is repeated
    and one that fails end anywhere. Statements are cut off some milliseconds after transactions; the warm-up would be
    an eighth more.
    """
    calls, rows = counted(record, "calls"), counted(record, "rows")
    done = {row["operation"]: row["ok"] for row in record["operations"]}
    new, pay, level = "NEW_ORDER", "PAYMENT", "STOCK_LEVEL"
    off = threads + sum(row["retried"] + row["failed"] for row in record["operations"])
    orders, lines = calls[new, "insert", "orders"], calls[new, "insert", "order_line"]
    assert orders == pytest.approx(done[new], abs=off + 0.05 * done[new])
    assert orders == pytest.approx(calls[new, "insert", "new_order"], abs=off)
    assert rows[new, "insert", "orders"] == orders
    assert calls[new, "select", "item"] == pytest.approx(10 * orders, abs=5 * (10 * orders) ** 0.5 + 15 * off)
    assert calls[new, "update", "stock"] == pytest.approx(lines, abs=off)
    assert calls[pay, "select", "warehouse"] == pytest.approx(calls[pay, "update", "district"], abs=off)
    assert calls[level, "select", "order_line"] == calls[level, "select", "stock"]
    assert not {table for _, _, table in calls} - set(TPCC_TABLES)
    assert not [key for key in calls if key[1] in ("update", "insert", "delete") and key[0] in ("ORDER_STATUS", level)]
    assert {table for _, statement, table in calls if statement == "delete"} == {"new_order"}


@pytest.mark.long
def test_conditions_hold_on_postgresql(postgresql: Dbms, open_directory: Path) -> None:
    workload = tpcc(
        threads=4, records=1, measure_s=6
    )  # four threads in one warehouse: they will get into each other's way
    snapshot = prepare_snapshot(postgresql, workload, {}, open_directory)
    assert set(TPCC_TABLES) <= set(snapshot.tables.values())  # I/O will be told apart by table
    configuration = {"synchronous_commit": "off"}
    record = measure_once(postgresql, workload, open_directory, snapshot, configuration, counts_statements=True)
    assert_sound(record)
    assert_statements(record, threads=4)
    # A session publishes its counters once a second: those of the first second are partly from before the window.
    assert changed(record, "server") == pytest.approx(changed(record, "client"), abs=0.06)
    assert sum(row["retried"] for row in record["operations"]) > 0


@pytest.mark.fleet
@pytest.mark.parametrize("name", ["mariadb", "mysql"])
def test_conditions_hold_with_innodb(name: str, open_directory: Path) -> None:
    dbms = shipped_dbms(name)
    snapshot = prepare_snapshot(dbms, tpcc(), {}, open_directory)
    configuration = {"innodb_flush_log_at_trx_commit": 2}
    record = measure_once(dbms, tpcc(), open_directory, snapshot, configuration, counts_statements=True)
    assert_sound(record)
    assert_statements(record)
    if dbms.statements is not None:
        assert changed(record, "server") == pytest.approx(changed(record, "client"), abs=0.03)


@pytest.mark.parametrize(
    ("name", "scale", "memory_mib", "configuration"),
    [
        ("postgresql", 5, 48, {"shared_buffers": 1024}),
        pytest.param("mariadb", 25, 160, {"innodb_buffer_pool_size": 8 << 20}, marks=pytest.mark.fleet),
    ],
)
def test_requests_belong_to_the_transactions_of_their_sessions(
    name: str,
    scale: int,
    memory_mib: int,
    configuration: dict[str, Any],
    loop: OpenDevice,
    open_directory: Path,
    tmp_path: Path,
) -> None:
    """Memory is smaller than the data. What a transaction reads is known: the tables that its statements name."""
    dbms = shipped_dbms(name)
    workload = tpcc(records=1, measure_s=3, memory_mib=memory_mib, parameters={"scale": scale})
    snapshot = prepare_snapshot(dbms, workload, {}, open_directory)
    traces = tmp_path / "traces"
    with open_watch(loop.block, 4096, "device", trace=traces) as watch:
        if watch.monitor != "bpf":
            pytest.skip(f"no trace without BPF: {watch.reason}")
        bench = Bench(dbms, workload, loop.directory, watch, traces=traces)
        record = measure_run(bench, "run", configuration, snapshot)
    assert_sound(record)
    with duckdb.connect() as connection:
        recorded = connection.execute(
            "SELECT op, count(*) FROM read_parquet(?) GROUP BY op", [str(traces / "run/events.parquet")]
        ).fetchall()
    requests, done = Counter[str](), {row["operation"]: row["ok"] for row in record["operations"]}
    for row in record["operation_io"]:
        requests[row["op"]] += row["requests"]
        assert row["transactions"] == done.get(row["operation"], record["run"]["operations"])
    assert requests == dict(recorded)
    unseen = record["run"]["starts_without_completion"]
    for row in record["io_profile"]:
        assert row["requests"] - unseen <= requests[row["op"]] <= row["requests"]
    reads = [row for row in record["operation_io"] if row["op"] == "read" and row["table_name"] in TPCC_TABLES]
    assert sum(row["requests"] for row in reads) > 100
    named = {("background", table) for table in TPCC_TABLES}
    named |= {(operation, table) for operation, _, table in counted(record, "calls")}
    # Now and then a session reads half a page of another table: presumably one that it writes to make room.
    strange = [row for row in reads if (row["operation"], row["table_name"]) not in named]
    assert sum(row["requests"] for row in strange) <= 0.01 * sum(row["requests"] for row in reads), strange
    writers = {row["operation"] for row in record["operation_io"] if row["role"] == "log"}
    assert {"NEW_ORDER", "PAYMENT"} <= writers <= {"NEW_ORDER", "PAYMENT", "DELIVERY", "background"}
    assert {row["operation"] for row in record["operation_io"] if row["op"] == "flush"} == {"background"}


def test_a_broken_transaction_makes_the_run_invalid(
    sqlite: Dbms, loaded: Snapshot, database: sqlite3.Connection, tmp_path: Path
) -> None:
    database.execute(
        "create trigger forget after update of d_ytd on district begin "
        "update district set d_ytd = old.d_ytd where d_w_id = old.d_w_id and d_id = old.d_id; end"
    )
    database.commit()
    record = measure_once(sqlite, tpcc(), tmp_path, loaded, {})
    assert record["run"]["status"] == "invalid"
    assert "TPC-C condition 1: W_YTD is the sum of D_YTD, not so in 2 warehouses" in record["run"]["reason"]
    assert [check["holds"] for check in record["checks"]] == [False, True, True, True]


def test_a_small_population_is_a_hundredth(database: sqlite3.Connection) -> None:
    tables = ("warehouse", "district", "item", "stock", "customer", "history", "orders", "new_order")
    counts = {table: one(database, f"select count(*) from {table}") for table in tables}  # noqa: S608
    assert counts == {
        "warehouse": 2,
        "district": 20,
        "item": 1000,
        "stock": 2000,
        "customer": 600,
        "history": 600,
        "orders": 600,
        "new_order": 180,
    }


@pytest.mark.long
def test_the_full_population_is_that_of_the_specification(sqlite: Dbms, tmp_path: Path) -> None:
    snapshot = prepare_snapshot(sqlite, tpcc(records=1, parameters={}), {}, tmp_path)
    with closing(sqlite3.connect(snapshot.data / "ycsb.db")) as database:
        assert one(database, "select count(*) from item") == 100_000
        assert one(database, "select count(*) from stock") == 100_000
        assert one(database, "select count(*) from customer") == 30_000
        assert one(database, "select count(*) from orders") == 30_000
        assert one(database, "select count(*) from new_order") == 9_000
        assert one(database, "select count(*) from order_line") == pytest.approx(300_000, rel=0.01)
        assert one(database, "select count(distinct c_last) from customer") == 1000
        assert one(database, "select avg(c_credit = 'BC') from customer") == pytest.approx(0.1, abs=0.01)
        assert one(database, "select avg(i_data like '%ORIGINAL%') from item") == pytest.approx(0.1, abs=0.01)
        assert one(database, "select avg(o_ol_cnt) from orders") == pytest.approx(10, abs=0.1)
        assert one(database, "select count(distinct o_c_id) from orders where o_w_id = 1 and o_d_id = 1") == 3000
        assert one(database, "select count(*) from orders where (o_id < 2101) <> (o_carrier_id is not null)") == 0
        assert one(database, "select min(i_price) >= 1 and max(i_price) <= 100 from item") == 1
        assert one(database, "select count(*) from order_line where ol_amount = 0 and ol_o_id > 2100") == 0
        assert one(database, "select min(no_o_id) from new_order") == 2101


def test_think_times_make_terminals_slow(sqlite: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    workload = tpcc(threads=20, measure_s=4, parameters={"scale": 100, "think_times": True})
    record = measure_once(sqlite, workload, tmp_path, loaded, {"journal_mode": "wal", "synchronous": "off"})
    assert record["run"]["status"] == "ok", record["run"]
    assert record["run"]["throughput_ops"] < 15  # each waits for 2 to 18 s before its first transaction


def test_a_mix_of_ones_own_runs_with_shorter_waits(sqlite: Dbms, loaded: Snapshot, tmp_path: Path) -> None:
    cards = {"new_order": 0, "payment": 0, "order_status": 0, "delivery": 0, "stock_level": 1}
    workload = tpcc(threads=20, parameters={"scale": 100, "think_times": 0.05, **cards})
    record = measure_once(sqlite, workload, tmp_path, loaded, {"journal_mode": "wal", "synchronous": "off"})
    assert record["run"]["status"] == "ok", record["run"]
    assert {row["operation"] for row in record["operations"]} == {"STOCK_LEVEL"}
    assert record["run"]["throughput_ops"] < 120  # each waits for 0.35 s on average
