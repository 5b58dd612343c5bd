"""Runs on real servers: what counts, what does not, and that nothing is left."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from measured_runs import measure_once

from knobscope.devices import OpenDevice
from knobscope.devices.lock import find_open_directory
from knobscope.generators import YcsbRun
from knobscope.processes import find_complaint
from knobscope.specs import Dbms, Workload
from knobscope.specs.models.lifecycle import Readback
from knobscope.stages.prepare import Snapshot

pytestmark = pytest.mark.real

Measure = Callable[..., Any]  # as fixture `measure`
TRACEBACK = 'Traceback (most recent call last):\n  File "x.py", line 1\n    raise Exception(cannot)\n'


@pytest.fixture
def measure(prepare: Callable[..., Snapshot]) -> Measure:
    """Return a function that measures a run of a DBMS in a directory."""

    def run(
        dbms: Dbms, workload: Workload, scratch: Path, configuration: dict[str, Any], loaded_by: Dbms | None = None
    ) -> Any:
        snapshot = prepare(loaded_by or dbms, workload, scratch)
        return measure_once(dbms, workload, scratch, snapshot, configuration)

    return run


def test_settings_of_the_load_are_in_force(
    measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    factors = {"workload.threads": 3, "workload.read_share": 1.0, "workload.records": 1000}
    record = measure(sqlite, short_workload, tmp_path, {"synchronous": "off", **factors})
    assert record["run"]["status"] == "ok", record["run"]
    assert [row["operation"] for row in record["operations"]] == ["READ"]
    assert {row["knob"]: row["effective"] for row in record["effective_values"]} == {
        "synchronous": "0",
        "workload.threads": "3",
        "workload.read_share": "1",
        "workload.records": "1000",
    }


def test_sqlite_run_is_whole(measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    record = measure(sqlite, short_workload, tmp_path, {"journal_mode": "wal", "synchronous": "off"})
    run = record["run"]
    assert run["status"] == "ok", run
    assert run["window_s"] >= 0.5
    assert run["operations"] == sum(row["ops"] for row in record["intervals"])
    assert len(record["intervals"]) == 4
    assert run["throughput_ops"] == pytest.approx(run["operations"] / run["window_s"])
    assert run["latency_p50_us"] <= run["latency_p95_us"] <= run["latency_p99_us"]
    whole_s = run["overhead_s"] + short_workload.warmup_s + run["window_s"]
    assert 0 < run["cpu_s"] < whole_s * (os.cpu_count() or 1)
    assert [(row["knob"], row["effective"]) for row in record["effective_values"]] == [
        ("journal_mode", "wal"),
        ("synchronous", "0"),
    ]


def test_a_run_knows_that_another_process_measures_meanwhile(
    measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    lock = find_open_directory() / f"knobscope-test-{os.getpid()}.lock"
    hold = (
        "import fcntl, sys; file = open(sys.argv[1], 'w'); fcntl.flock(file, fcntl.LOCK_EX); print(flush=True); input()"
    )
    with subprocess.Popen([sys.executable, "-c", hold, lock], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
        assert other.stdout is not None
        try:
            assert other.stdout.readline() == b"\n"
            run = measure(sqlite, short_workload, tmp_path, {"synchronous": "off"})["run"]
        finally:
            other.kill()
            lock.unlink()
    assert run["other_measurements"] >= 1


def test_a_run_knows_what_other_programs_took(
    measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    """One that is no child of ours, as it would be in a shell of its own."""
    spin = ["sh", "-c", f"{sys.executable} -c 'while True: pass' > /dev/null & echo $!"]
    pid = int(subprocess.run(spin, stdout=subprocess.PIPE, check=True).stdout)
    try:
        run = measure(sqlite, short_workload, tmp_path, {"synchronous": "off"})["run"]
    finally:
        os.kill(pid, signal.SIGKILL)
    assert run["other_cpu_share"] > 0.2 / (os.cpu_count() or 1)
    assert "python" in run["other_programs"]


def test_a_value_that_is_not_in_force_makes_the_run_invalid(
    measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    # The page size of a file that has data stays what it was: SQLite accepts the pragma and ignores it.
    late = sqlite.knobs["page_size"].model_copy(update={"apply": "restart"})
    dbms = sqlite.model_copy(update={"knobs": {**sqlite.knobs, "page_size": late}})
    run = measure(dbms, short_workload, tmp_path, {"page_size": 8192})["run"]
    assert run["status"] == "invalid"
    assert "page_size=8192 reads back 4096" in run["reason"]


def test_a_setting_of_the_kernel_that_something_else_changes_makes_the_run_invalid(
    sqlite: Dbms,
    short_workload: Workload,
    prepare: Callable[..., Snapshot],
    loop: OpenDevice,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    if os.geteuid() != 0:
        pytest.skip("queues are root's to change")
    begin, setting = YcsbRun.wait_measuring, Path("/sys/block", loop.block.name, "queue/read_ahead_kb")

    def wait_measuring(self: YcsbRun, timeout: float) -> int:
        setting.write_text("64")
        return begin(self, timeout)

    before, snapshot = setting.read_text(), prepare(sqlite, short_workload, loop.directory)
    monkeypatch.setattr(YcsbRun, "wait_measuring", wait_measuring)
    configuration = {"queue.read_ahead_kb": 4}
    run = measure_once(sqlite, short_workload, loop.directory, snapshot, configuration, blocks=[loop.block])["run"]
    assert run["status"] == "invalid", run
    assert f"read_ahead_kb of {loop.block.name} was 4 when the run began and is 64 at its end" in run["reason"]
    assert run["disturbance"] in run["reason"]
    assert setting.read_text() == before


def test_postgresql_run_is_whole_and_leaves_nothing(
    measure: Measure, postgresql: Dbms, short_workload: Workload, open_directory: Path
) -> None:
    configuration = {"synchronous_commit": "off", "fsync": True, "shared_buffers": 4096}
    record = measure(postgresql, short_workload, open_directory, configuration)
    assert record["run"]["status"] == "ok", record["run"]
    assert {row["knob"] for row in record["effective_values"]} == set(configuration)
    running = [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(open_directory) in read_command(path)]
    assert running == []


def read_command(path: Path) -> str:
    try:
        return path.read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_server_that_does_not_start_is_a_result_with_its_own_words(
    measure: Measure, postgresql: Dbms, short_workload: Workload, open_directory: Path
) -> None:
    run = measure(postgresql, short_workload, open_directory, {"wal_level": "minimal"})["run"]  # needs no senders
    assert run["status"] == "failed_start"
    assert "max_wal_senders" in run["log_tail"]
    assert "first complaint of the server: " in run["reason"]
    assert "max_wal_senders" in run["reason"]


@pytest.mark.long
def test_operations_that_fail_are_explained_by_the_first_of_them(
    measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    assert sqlite.connection is not None
    session = [*sqlite.connection.session, "pragma query_only = 1"]
    broken = sqlite.model_copy(update={"connection": sqlite.connection.model_copy(update={"session": session})})
    run = measure(broken, short_workload, tmp_path, {}, loaded_by=sqlite)["run"]
    assert run["status"] == "failed_run"
    assert "operations failed" in run["reason"]
    assert "UPDATE: " in run["reason"]
    assert "readonly database" in run["reason"]


@pytest.mark.long
def test_only_knobs_have_to_agree_between_connections(
    measure: Measure, sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    for name, is_knob in (("info.CHUNK_COUNT", False), ("cache_size", True)):
        query = f"select 'synchronous', synchronous from pragma_synchronous union all select '{name}', random()"  # noqa: S608
        asked = sqlite.model_copy(update={"readback": Readback(query=query)})
        configuration = {"synchronous": "off", **({"cache_size": -2000} if is_knob else {})}
        two = short_workload.model_copy(update={"threads": 2})
        run = measure(asked, two, tmp_path, configuration, loaded_by=sqlite)["run"]
        assert ("connections disagree: cache_size (" in run.get("reason", "")) == is_knob, run
        assert "info.CHUNK_COUNT" not in run.get("reason", "")


@pytest.mark.parametrize(
    ("log", "complaint"),
    [
        ("ready\n2026 [ERROR] no such table\n2026 [ERROR] later\n", "2026 [ERROR] no such table"),
        ("failed UPDATE: database is locked\n", "UPDATE: database is locked"),
        ("java.lang.IllegalStateException: x\n", "java.lang.IllegalStateException: x"),
        ("bind: Permission denied", "bind: Permission denied"),
        ("ready\nx does not support DML\n", "x does not support DML"),
        ("1 [Warning] cannot lock memory\n2 [ERROR] unknown variable\n", "2 [ERROR] unknown variable"),
        (
            "1 [Warning] failed to retrieve the MAC address\n2 [Warning] cannot lock memory\n",
            "2 [Warning] cannot lock memory",
        ),
        ("1 [Warning] failed to retrieve the MAC address\n", None),
        ("flag provided but not defined: -data_dir\nUsage:\n", "flag provided but not defined: -data_dir"),
        ("all is well\nready\n", None),
        ("FATAL:  the database system is starting up\nPANIC:  no space\n", "PANIC:  no space"),
        ("ignored errors: 0 (0.00 per sec.)\n", None),
        ("ignored errors: 0, fatal: out of memory\n", "ignored errors: 0, fatal: out of memory"),
        ("second,operations,errors,mean_us\n1,812,0,1206.1\n", None),
        ("second,operations,errors\ncannot connect\n", "cannot connect"),
        ('{"second": 1.0, "operations": 3, "errors": 0}\n', None),
        ('{"second": 1.0, "operations": 3, "errors": 2}\n', '{"second": 1.0, "operations": 3, "errors": 2}'),
        ("ignored errors: 1 (0.20 per sec.)\n", "ignored errors: 1 (0.20 per sec.)"),
        (f"{TRACEBACK}fb.DatabaseError: deadlock\n-conflict\n", "fb.DatabaseError: deadlock"),
        (f"Exception in thread Thread-1 (client):\n{TRACEBACK}BrokenBarrierError\n", "BrokenBarrierError"),
        (f"Exception ignored in: <function __del__>\n{TRACEBACK}x.E: shutdown\nValueError: 1\n", "ValueError: 1"),
        ('Exception in thread "main" java.lang.Error: heap\n', 'Exception in thread "main" java.lang.Error: heap'),
    ],
)
def test_the_first_complaint_of_a_log_is_found(log: str, complaint: str | None) -> None:
    assert find_complaint(log) == complaint
