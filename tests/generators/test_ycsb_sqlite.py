"""The real client on real SQLite files."""

import os
import signal
import sqlite3
import stat
import time
from pathlib import Path

import pytest
import yaml
from generator_databases import COLUMNS, RECORDS, SessionFactory, sqlite_session
from waiting import PATIENCE_S

from knobscope.generators import GeneratorError, LoadResult, YcsbRun, load_records, read_back
from knobscope.processes import supervise
from knobscope.specs import Jvm

pytestmark = pytest.mark.real

WORKLOADS = Path(__file__).parents[2] / "specs" / "workloads"
OPERATIONS = {
    "a": {"READ", "UPDATE"},
    "b": {"READ", "UPDATE"},
    "c": {"READ"},
    "d": {"READ", "INSERT"},
    "e": {"SCAN", "INSERT"},
    "f": {"READ", "UPDATE"},
}


def assert_sums_agree(result: LoadResult) -> None:
    for name, totals in result.operations.items():
        rows = [row for row in result.intervals if row["op"] == name and row["t_s"] > 0]
        assert totals["ok"] == sum(row["ops"] for row in rows), name
        assert totals["failed"] == sum(row["failed"] for row in rows), name
    single = [totals for name, totals in result.operations.items() if name != "ALL"]
    assert result.operations["ALL"]["ok"] == sum(totals["ok"] for totals in single)


def test_load_stores_and_counts_every_record(database: Path) -> None:
    with sqlite3.connect(database) as connection:
        rows = connection.execute("select count(*), min(length(field9)), max(length(field9)) from usertable").fetchone()
    assert rows == (RECORDS, 100, 100)


@pytest.mark.parametrize("journal", ["wal", pytest.param("delete", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "mix",
    [pytest.param(mix, marks=pytest.mark.long if mix == "b" else ()) for mix in OPERATIONS],  # b: the same as a
)
def test_mix(on_sqlite: SessionFactory, mix: str, journal: str) -> None:
    parameters = yaml.safe_load((WORKLOADS / f"ycsb-{mix}.yaml").read_text())["parameters"]
    session = on_sqlite(
        properties={"recordcount": str(RECORDS)} | {name: str(value) for name, value in parameters.items()},
        init=["pragma busy_timeout=5000", f"pragma journal_mode={journal}", "pragma synchronous=off"],
        readback={"each": {"journal_mode": "pragma journal_mode"}},
    )
    with YcsbRun(session, warmup_s=0.1, measure_s=0.4, interval_ms=100) as run:
        assert run.wait_connected(PATIENCE_S).effective == {"journal_mode": journal}
        run.wait_measured(PATIENCE_S)
        result = run.result()
    assert set(result.operations) == {"ALL", *OPERATIONS[mix]}
    assert result.operations["ALL"]["failed"] == 0
    assert_sums_agree(result)
    assert len([row for row in result.intervals if row["op"] == "ALL" and row["t_s"] > 0]) == 4
    assert result.window_s >= 0.4
    for totals in result.operations.values():
        assert 0 < totals["p50_us"] <= totals["p95_us"] <= totals["p99_us"] <= totals["p999_us"] <= totals["max_us"]


def test_the_window_is_between_the_events(on_sqlite: SessionFactory) -> None:
    """On a busy machine an event comes late now and then."""

    def find_difference() -> float:
        with YcsbRun(on_sqlite(), warmup_s=0.1, measure_s=0.4) as run:
            begin, end = run.wait_measuring(PATIENCE_S), run.wait_measured(PATIENCE_S)
            return abs(run.result().window_s - (end - begin) / 1e9)

    assert any(find_difference() < 0.02 for _ in range(20))


def test_proportions_are_those_that_were_asked_for(on_sqlite: SessionFactory) -> None:
    session = on_sqlite(properties={"recordcount": str(RECORDS), "readproportion": "0.8", "scanproportion": "0.2"})
    with YcsbRun(session, warmup_s=0, measure_s=0.5) as run:
        run.wait_measured(PATIENCE_S)
        operations = run.result().operations
    assert set(operations) == {"ALL", "READ", "SCAN"}  # no update, though YCSB's default is 5 %
    done = operations["ALL"]["ok"]
    assert operations["SCAN"]["ok"] == pytest.approx(0.2 * done, abs=5 * (0.2 * 0.8 * done) ** 0.5)


def test_read_back_tells_what_is_in_force_not_what_was_asked_for(on_sqlite: SessionFactory) -> None:
    asked = ["pragma journal_mode=wall", "pragma synchronous=full", "pragma cache_size=-3000", "pragma no_such=1"]
    each = {name: f"pragma {name}" for name in ("journal_mode", "synchronous", "cache_size", "no_such")}
    connected = read_back(on_sqlite(init=asked, readback={"each": each}))
    assert connected.effective == {"journal_mode": "delete", "synchronous": "2", "cache_size": "-3000"}
    assert connected.disagree == {}


def test_read_back_leaves_the_data_alone(on_sqlite: SessionFactory, database: Path) -> None:
    before = database.read_bytes()
    read_back(on_sqlite(readback={"query": "select 'version', sqlite_version()"}))
    assert database.read_bytes() == before


def test_connections_that_disagree_are_named(on_sqlite: SessionFactory) -> None:
    readback = {"each": {"dice": "select random()", "coin": "select 1"}}
    connected = read_back(on_sqlite(readback=readback, threads=3))
    assert connected.effective["coin"] == "1"
    assert list(connected.disagree) == ["dice"]
    assert len(connected.disagree["dice"]) == 3


def test_a_refused_setting_is_distinguished(on_sqlite: SessionFactory) -> None:
    with pytest.raises(GeneratorError, match=r'"pragma synchronous = = 1": .*syntax error') as caught:
        read_back(on_sqlite(init=["pragma synchronous = = 1"]))
    assert caught.value.kind == "refused"


def test_a_wrong_table_ends_the_run_with_the_words_of_the_dbms(on_sqlite: SessionFactory) -> None:
    session = on_sqlite(properties={"recordcount": "10", "table": "nowhere"})
    with (
        YcsbRun(session, warmup_s=0.1, measure_s=0.2) as run,
        pytest.raises(GeneratorError, match="no such table: nowhere") as caught,
    ):
        run.wait_measured(PATIENCE_S)
    assert caught.value.kind == "failed"
    assert "no such table: nowhere" in caught.value.log_tail


def test_a_load_that_loses_records_fails(tmp_path: Path) -> None:
    schema = [
        f"create table usertable (YCSB_KEY text primary key, {COLUMNS})",
        "create trigger lose before insert on usertable when new.YCSB_KEY like '%7' begin select raise(ignore); end",
    ]
    with pytest.raises(GeneratorError, match=r"loaded \d+ records instead of 500"):
        load_records(sqlite_session(tmp_path / "data.sqlite", tmp_path / "client"), schema)


def test_enough_operations_end_the_window(on_sqlite: SessionFactory) -> None:
    with YcsbRun(on_sqlite(), warmup_s=0, measure_s=600, measure_operations=40, interval_ms=50) as run:
        run.wait_measuring(PATIENCE_S)
        run.wait_measured(PATIENCE_S)
        result = run.result()
    assert_sums_agree(result)
    counts = [row["ops"] for row in result.intervals if row["op"] == "ALL" and row["t_s"] > 0]
    assert sum(counts) == result.operations["ALL"]["ok"] >= 40
    assert len(counts) == 4 or (len(counts) > 4 and sum(counts[:-1]) < 40)


def test_a_busy_database_is_counted_and_ends_no_thread(on_sqlite: SessionFactory, database: Path) -> None:
    """An operation is repeated for about a second at most, and the database is locked for longer."""
    session = on_sqlite(init=["pragma busy_timeout=1", "pragma synchronous=off"])
    with (
        sqlite3.connect(database, isolation_level=None) as blocker,
        YcsbRun(session, warmup_s=0, measure_s=5, interval_ms=200) as run,
    ):
        run.wait_measuring(PATIENCE_S)
        blocker.execute("pragma busy_timeout=5000")
        blocker.execute("begin exclusive")
        time.sleep(1.6)
        blocker.execute("commit")
        run.wait_measured(PATIENCE_S)
        result = run.result()
        assert "database is locked" in run.log_tail()
    assert_sums_agree(result)
    assert result.operations["ALL"]["failed"] > 0
    assert result.operations["ALL"]["retried"] >= 9 * result.operations["ALL"]["failed"]
    rows = [row for row in result.intervals if row["op"] == "ALL"]
    blocked = max(number for number, row in enumerate(rows) if row["failed"] and not row["ops"])
    assert sum(row["ops"] for row in rows[blocked + 1 :]) > 0  # and once it is free, all goes on


def test_waits_have_limits_and_stop_ends_the_client(on_sqlite: SessionFactory) -> None:
    with YcsbRun(on_sqlite(), warmup_s=0, measure_s=600) as run:
        pid = run.pid
        run.wait_measuring(PATIENCE_S)
        with pytest.raises(GeneratorError, match=r"did not reach 'measured' within 0\.1 s") as caught:
            run.wait_measured(0.1)
        assert caught.value.kind == "timeout"
        assert "Starting test" in caught.value.log_tail
    assert not Path(f"/proc/{pid}").exists()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
def test_a_client_that_dies_is_noticed_before_the_window_ends(
    on_sqlite: SessionFactory, number: signal.Signals
) -> None:
    with YcsbRun(on_sqlite(), warmup_s=0, measure_s=600) as run:
        run.wait_measuring(PATIENCE_S)
        os.kill(run.pid, number)
        with pytest.raises(GeneratorError, match=f"ended with code -{number} before 'measured'") as caught:
            run.wait_measured(PATIENCE_S)
    assert (caught.value.kind, caught.value.exit_code) == ("died", -number)


def test_a_workload_that_does_not_exist_is_reported(on_sqlite: SessionFactory) -> None:
    session = on_sqlite(properties={"recordcount": "10", "workload": "no.such.Workload"})
    with pytest.raises(GeneratorError, match="before 'connected'") as caught:
        read_back(session)
    assert "ClassNotFoundException: no.such.Workload" in caught.value.log_tail


def test_the_pid_is_that_of_the_jvm_also_under_a_keeper(on_sqlite: SessionFactory) -> None:
    with YcsbRun(on_sqlite(), warmup_s=0, measure_s=0.2, supervise=supervise) as run:
        pid = run.pid
        assert b"site.ycsb.Client" in Path(f"/proc/{pid}/cmdline").read_bytes()
        assert Path(f"/proc/{pid}/exe").readlink().name == "java"
        run.wait_measured(PATIENCE_S)
        assert run.result().operations["ALL"]["ok"] > 0


def test_passwords_are_for_the_owner_only_and_any_text_survives(tmp_path: Path) -> None:
    database = tmp_path / "ä = b#:\\ !%.sqlite"
    session = sqlite_session(database, tmp_path / "client", init=["create table if not exists t\n (a text)"])
    read_back(session)
    assert database.exists()
    assert stat.S_IMODE((tmp_path / "client" / "client.properties").stat().st_mode) == 0o600
    assert stat.S_IMODE((tmp_path / "client").stat().st_mode) == 0o700


def test_classes_come_from_the_archive(on_sqlite: SessionFactory, tmp_path: Path) -> None:
    log = tmp_path / "classes.log"
    read_back(on_sqlite(jvm=Jvm(options=[f"-Xlog:class+load:file={log}"])))
    source = {line.split()[1]: line.partition("source: ")[2] for line in log.read_text().splitlines()}
    for name in ("site.ycsb.Client", "knobscope.TimedDB", "org.sqlite.core.NativeDB", "org.postgresql.Driver"):
        assert source[name] == "shared objects file (top)", name
