"""A killed keeper leaves no shared memory, and no server that a shell started."""

import os
import signal
import subprocess
from pathlib import Path

import pytest
from waiting import PATIENCE_S, wait_until

from knobscope.servers import initialise_data, make_data_directory, open_instance
from knobscope.servers.server import open_log
from knobscope.specs import Dbms


@pytest.mark.real
@pytest.mark.parametrize("through_shell", [False, True])
@pytest.mark.parametrize("victim", ["outer", "inner"])
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
        quiet = subprocess.DEVNULL
        assert wait_until(lambda: instance.start(ready, stdout=quiet, stderr=quiet).wait() == 0)
        lines = (data / "postmaster.pid").read_text().splitlines()
        server, segment = int(lines[0]), lines[6].split()[1]
        maps = Path(f"/proc/{server}/maps").read_text().splitlines()
        shared = [line.split()[-1] for line in maps if "/dev/shm/" in line]
        assert shared != []
        inner = int(Path(f"/proc/{keeper.pid}/task/{keeper.pid}/children").read_text().split()[0])
        assert segment in system_v()
        os.kill(keeper.pid if victim == "outer" else inner, signal.SIGKILL)
        keeper.wait(PATIENCE_S)
        assert wait_until(lambda: not Path(f"/proc/{server}").exists())
        assert wait_until(lambda: segment not in system_v())
        assert not any(Path(path).exists() for path in shared)


def system_v() -> set[str]:
    return {line.split()[1] for line in Path("/proc/sysvipc/shm").read_text().splitlines()[1:]}
