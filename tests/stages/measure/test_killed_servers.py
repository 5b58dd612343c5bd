"""How long real servers take to come back after they were killed."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms

from knobscope.processes import find_complaint
from knobscope.servers import fill_program
from knobscope.specs import Dbms, Workload
from knobscope.specs.models.programs import Program
from knobscope.stages.measure.recovery import Crash
from knobscope.stages.prepare import Snapshot
from knobscope.tables import RunRow

pytestmark = pytest.mark.real
#: Starts a program the first time only.
ONCE = 'if [ -e "$0/again" ]; then echo "FATAL: cannot recover" >&2; exit 3; fi; touch "$0/again"; exec "$@"'
measure = partial(load_and_measure, measures_recovery=True)


def test_postgresql_comes_back_with_all_that_it_acknowledged(
    postgresql: Dbms,
    short_workload: Workload,
    prepare: Callable[..., Snapshot],
    open_directory: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    logs = []
    recover = Crash.recover

    def watched(crash: Crash) -> RunRow:
        found = recover(crash)
        logs.append((crash.instance.runtime / "recovery.log").read_text())
        return found

    monkeypatch.setattr(Crash, "recover", watched)
    prepare(postgresql, short_workload, open_directory)
    record = measure(postgresql, short_workload, open_directory, {})
    run = record["run"]
    assert run["status"] == "ok", run
    assert "automatic recovery in progress" in logs[0]
    assert logs[0].count("redo done at") == 1
    fatal = [line for line in logs[0].splitlines() if "FATAL" in line]
    assert [line for line in fatal if find_complaint(line)] == []  # only that it was asked too early
    seconds = {row["phase"]: row["seconds"] for row in record["phases"]}
    assert 0 < run["recovery_s"] <= seconds["recover"]
    assert list(seconds)[-4:] == ["witness", "stop", "recover", "clean"]
    assert (run["lost_writes"], run["lost_s"]) == (0, 0)


@pytest.mark.long
def test_postgresql_loses_commits_that_it_did_not_wait_for(
    postgresql: Dbms, short_workload: Workload, open_directory: Path
) -> None:
    configuration = {"synchronous_commit": "off", "wal_writer_delay": 10000}
    run = measure(postgresql, short_workload, open_directory, configuration)["run"]
    assert run["status"] == "ok", run
    assert run["lost_writes"] > 0
    assert 0 < run["lost_s"] < run["overhead_s"] + short_workload.warmup_s + run["window_s"]


@pytest.mark.long
def test_a_witness_that_stopped_while_the_server_lived_is_not_believed(
    postgresql: Dbms, short_workload: Workload, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = Crash.write

    def late(crash: Crash) -> None:
        write(crash)
        crash.killed_after += 60  # the server is taken to have lived a minute longer than it did

    monkeypatch.setattr(Crash, "write", late)
    run = measure(postgresql, short_workload, open_directory, {})["run"]
    assert run["status"] == "failed_run"
    assert "a row was refused before the server was killed" in run["reason"]
    assert "lost_writes" not in run


@pytest.mark.long
@pytest.mark.parametrize(
    ("name", "configuration", "loses"),
    [
        ("mariadb", {"innodb_flush_log_at_trx_commit": 1}, False),
        ("mariadb", {"innodb_flush_log_at_trx_commit": 0}, True),
        ("redis", {"appendonly": True, "appendfsync": "everysec"}, False),  # what was written is in the page cache
        ("redis", {"appendonly": False}, True),
    ],
)
def test_other_servers_lose_what_they_keep_to_themselves(
    name: str, configuration: dict[str, Any], loses: bool, short_workload: Workload, open_directory: Path
) -> None:
    dbms = shipped_dbms(name)
    run = measure(dbms, short_workload, open_directory, configuration)["run"]
    assert run["status"] == "ok", run
    assert (run["lost_writes"] > 0) == loses, run
    assert (run["lost_s"] > 0) == loses


@pytest.mark.long
def test_server_that_does_not_come_back_makes_the_run_fail(
    postgresql: Dbms, short_workload: Workload, open_directory: Path
) -> None:
    assert postgresql.lifecycle is not None
    program, *rest = postgresql.lifecycle.start
    start = ["sh", "-c", ONCE, "{data}", fill_program(postgresql.programs[program]), *rest]
    changed = {
        "lifecycle": postgresql.lifecycle.model_copy(update={"start": start}),
        "programs": {**postgresql.programs, "sh": Program(find=["/bin/sh"], package="dash")},
    }
    run = measure(postgresql.model_copy(update=changed), short_workload, open_directory, {}, loaded_by=postgresql)[
        "run"
    ]
    assert run["status"] == "failed_run"
    assert run["reason"].startswith("the server was killed after the window and did not come back")
    assert run["reason"].endswith("FATAL: cannot recover")
    assert run["throughput_ops"] > 0


def test_what_lives_in_its_client_has_no_recovery(
    sqlite: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], tmp_path: Path
) -> None:
    prepare(sqlite, short_workload, tmp_path)
    run = measure(sqlite, short_workload, tmp_path, {})["run"]
    assert run["status"] == "ok", run
    assert "recovery_s" not in run
