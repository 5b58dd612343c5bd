"""Real servers and clients that are stopped in the middle of the window: the run says so, or does not count."""

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from measured_runs import load_and_measure
from shipped_specs import shipped_dbms, shipped_workload
from test_other_generators import measure

from knobscope.generators import CommandRun, YcsbRun
from knobscope.servers import Server
from knobscope.specs import Dbms

pytestmark = pytest.mark.real


@contextmanager
def stopped_in_window(who: str, seconds: float) -> Iterator[None]:
    """Stop the server, or all of the load's process tree, two seconds after the window began."""
    started: list[Server] = []

    def stop(load: CommandRun | YcsbRun) -> None:
        time.sleep(2)
        pids = tree(started[-1].pid if who == "server" else load.root_pid)
        for sign in (signal.SIGSTOP, signal.SIGCONT):
            for pid in pids:
                os.kill(pid, sign)
            time.sleep(seconds)

    with pytest.MonkeyPatch.context() as patch:
        ready, begins = Server.wait_ready, {kind: kind.wait_measuring for kind in (CommandRun, YcsbRun)}

        def wait_ready(self: Server, *more: Any) -> None:
            ready(self, *more)
            started.append(self)

        def wait_measuring(self: Any, timeout: float) -> int:
            at = begins[type(self)](self, timeout)
            threading.Thread(target=stop, args=(self,), daemon=True).start()
            return at

        patch.setattr(Server, "wait_ready", wait_ready)
        for kind in begins:
            patch.setattr(kind, "wait_measuring", wait_measuring)
        yield


def tree(root: int) -> list[int]:
    """A process and all below it."""
    below = [
        int(pid) for task in Path(f"/proc/{root}/task").iterdir() for pid in (task / "children").read_text().split()
    ]
    return [root, *(pid for child in below for pid in tree(child))]


def test_a_stopped_server_is_a_pause_of_the_run(postgresql: Dbms, open_directory: Path) -> None:
    with stopped_in_window("server", 6):
        record = measure(postgresql, "pgbench-tpcb", open_directory, {"synchronous_commit": "off"}, measure_s=5)
    run = record["run"]
    assert run["status"] == "ok", run
    assert run["window_s"] > 7
    assert run["window_pause_s"] >= 4
    assert run["window_late_s"] > 2
    assert 0 in [row["ops"] for row in record["intervals"]]


@pytest.mark.long
def test_a_stopped_client_makes_the_run_invalid(open_directory: Path) -> None:
    with stopped_in_window("client", 4):
        workload = shipped_workload("ycsb-a", records=1000, threads=2, warmup_s=1, measure_s=5)
        run = load_and_measure(shipped_dbms("redis"), workload, open_directory, {})["run"]
    assert run["status"] == "invalid"
    assert "the load generator or the machine stood still" in run["reason"]
