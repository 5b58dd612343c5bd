"""How long real servers take to come back after they were killed."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from knobscope.devices import find_block_device
from knobscope.servers import fill_program
from knobscope.specs import Dbms, Workload
from knobscope.specs.models.programs import Program
from knobscope.specs.shelf import read_spec
from knobscope.stages.measure.recovery import Crash
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import Snapshot, prepare_snapshot
from knobscope.tables import RunRow
from knobscope.watch import open_watch

pytestmark = pytest.mark.real
ROOT = Path(__file__).parents[3]
#: Starts a program the first time only.
ONCE = 'if [ -e "$0/again" ]; then echo "FATAL: cannot recover" >&2; exit 3; fi; touch "$0/again"; exec "$@"'


def measure(
    dbms: Dbms, workload: Workload, scratch: Path, configuration: dict[str, Any], snapshot_of: Dbms | None = None
) -> Any:
    loaded = {name: value for name, value in configuration.items() if dbms.knobs[name].apply == "load"}
    snapshot = prepare_snapshot(snapshot_of or dbms, workload, loaded, scratch)
    with open_watch(find_block_device(scratch), unit=4096, scope="process", prefer="procfs") as watch:
        return measure_run(
            Bench(dbms, workload, scratch, watch, measures_recovery=True), "run", configuration, snapshot
        )


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
    dbms = read_spec(ROOT / f"specs/dbms/{name}.yaml", Dbms, None)[1]
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
    run = measure(postgresql.model_copy(update=changed), short_workload, open_directory, {}, snapshot_of=postgresql)[
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
