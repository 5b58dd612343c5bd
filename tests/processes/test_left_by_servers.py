"""Killed processes leave no shared memory, no temporary files, and no server that a shell started."""

import contextlib
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from ssh_server import descendants
from waiting import PATIENCE_S, wait_until

from knobscope.servers import Instance, initialise_data, make_data_directory, open_instance
from knobscope.servers.server import open_log
from knobscope.specs import Dbms

POSTGRESQL = Path(__file__).parents[2] / "specs/dbms/postgresql.yaml"

pytestmark = pytest.mark.real

#: Starts the server of a spec and waits to be killed.
STARTER = """
import sys, time
from pathlib import Path
from knobscope.servers import Server, initialise_data, open_instance
from knobscope.specs import Dbms, read_spec
dbms, data = read_spec(Path(sys.argv[1]), Dbms, None)[1], Path(sys.argv[2])
with open_instance(dbms, data) as instance:
    initialise_data(instance, {}, data.parent / "log")
    with Server(instance, dbms.lifecycle, {}, data.parent / "log") as server:
        server.wait_ready()
        print(server.pid, flush=True)
        time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("through_shell", "victim"),
    [
        (False, "outer"),
        (True, "inner"),
        pytest.param(False, "inner", marks=pytest.mark.long),
        pytest.param(True, "outer", marks=pytest.mark.long),
    ],
)
def test_a_killed_keeper_leaves_nothing(
    postgresql: Dbms, open_directory: Path, through_shell: bool, victim: str
) -> None:
    life = postgresql.lifecycle
    assert life is not None
    data, log = open_directory / "data", open_directory / "log"
    make_data_directory(data)
    with open_instance(postgresql, data) as instance:
        initialise_data(instance, {}, log)
        command = instance.fill_command(life.start, {}, "start")
        if through_shell:
            command = ["/bin/sh", "-c", '"$@"; exit 0', "sh", *command]
        with open_log(log) as output:
            keeper = instance.start(command, stdout=output, stderr=output, end_signal=life.discard)
        ready = instance.fill_command(life.ready or [], {}, "start")
        assert wait_until(lambda: ask(instance, ready) == 0)
        assert wait_until(lambda: len(descendants(keeper.pid)) > 4)  # some begin after it is ready
        of_server = list(descendants(keeper.pid))
        inner = int(Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()[0])
        if os.geteuid() == 0:
            assert not shared_by(of_server)  # the server has its own, out of sight
        os.kill(keeper.pid if victim == "outer" else inner, signal.SIGKILL)
        keeper.wait(PATIENCE_S)
        assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in of_server))
    assert not shared_by(of_server)


@pytest.mark.skipif(os.geteuid() != 0, reason="namespaces need root")
def test_nothing_is_left_when_everything_is_killed_at_once(open_directory: Path) -> None:
    data = open_directory / "data"
    make_data_directory(data)
    command = [sys.executable, "-c", STARTER, str(POSTGRESQL), str(data)]
    starter = subprocess.Popen(command, stdout=subprocess.PIPE)
    assert starter.stdout is not None
    keeper = int(starter.stdout.readline())
    server = next(pid for pid, command in descendants(keeper).items() if "keeper" not in command)
    namespaces = {str(Path(f"/proc/{server}/ns/{kind}").readlink()) for kind in ("pid", "ipc", "mnt")}
    segments = ["nsenter", f"--ipc=/proc/{server}/ns/ipc", "tail", "-n+2", "/proc/sysvipc/shm"]
    assert subprocess.run(segments, capture_output=True, check=True).stdout != b""
    its_memory = Path(f"/proc/{server}/root/dev/shm")
    assert list(its_memory.iterdir()) != []
    assert its_memory.stat().st_dev != Path("/dev/shm").stat().st_dev
    killed = [starter.pid, *descendants(starter.pid)]
    for pid in killed:
        with contextlib.suppress(ProcessLookupError):  # ended with one that was killed before
            os.kill(pid, signal.SIGKILL)
    starter.wait()
    starter.stdout.close()
    assert wait_until(lambda: not namespaces & in_use())
    assert not shared_by(killed)


def ask(instance: Instance, ready: list[str]) -> int:
    return instance.start(ready, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).wait()


def shared_by(pids: list[int]) -> set[str]:
    """Return the System V segments in our namespace that processes have made; others on this machine make some, too."""
    segments = (line.split() for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:])
    return {segment[1] for segment in segments if int(segment[4]) in pids}


def in_use() -> set[str]:
    """Return the namespaces of all processes that we may look at."""
    found = set()
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):
            found |= {str(link.readlink()) for link in (process / "ns").iterdir()}
    return found
