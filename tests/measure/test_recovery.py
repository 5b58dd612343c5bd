"""How long real servers take to come back after they were killed."""

from pathlib import Path
from typing import Any

import pytest

from knobscope.devices import find_block_device
from knobscope.measure.recovery import measure_recovery
from knobscope.measure.run import Bench, measure_run
from knobscope.prepare import prepare_snapshot
from knobscope.servers import Instance, fill_program
from knobscope.specs import Dbms, Workload
from knobscope.specs.programs import Program
from knobscope.watch import open_watch

pytestmark = pytest.mark.real
#: Starts a program the first time only.
ONCE = 'if [ -e "$0/again" ]; then echo "FATAL: cannot recover" >&2; exit 3; fi; touch "$0/again"; exec "$@"'


def measure(dbms: Dbms, workload: Workload, scratch: Path, snapshot_of: Dbms | None = None) -> Any:
    snapshot = prepare_snapshot(snapshot_of or dbms, workload, {}, scratch)
    with open_watch(find_block_device(scratch), unit=4096, scope="process", prefer="procfs") as watch:
        return measure_run(Bench(dbms, workload, scratch, watch, measures_recovery=True), "run", {}, snapshot)


def test_postgresql_replays_its_log(
    postgresql: Dbms, short_workload: Workload, open_directory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    logs = []

    def watched(instance: Instance, *others: Any) -> float:
        seconds = measure_recovery(instance, *others)
        logs.append((instance.runtime / "recovery.log").read_text())
        return seconds

    monkeypatch.setattr("knobscope.measure.run.measure_recovery", watched)
    record = measure(postgresql, short_workload, open_directory)
    assert record["run"]["status"] == "ok", record["run"]
    assert "automatic recovery in progress" in logs[0]
    assert logs[0].count("redo done at") == 1
    seconds = {row["phase"]: row["seconds"] for row in record["phases"]}
    assert 0 < record["run"]["recovery_s"] <= seconds["recover"]
    assert list(seconds)[-3:] == ["stop", "recover", "clean"]


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
    run = measure(postgresql.model_copy(update=changed), short_workload, open_directory, snapshot_of=postgresql)["run"]
    assert run["status"] == "failed_run"
    assert run["reason"].startswith("the server was killed after the window and did not come back")
    assert run["reason"].endswith("FATAL: cannot recover")
    assert run["throughput_ops"] > 0


def test_what_lives_in_its_client_has_no_recovery(sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    run = measure(sqlite, short_workload, tmp_path)["run"]
    assert run["status"] == "ok", run
    assert "recovery_s" not in run
