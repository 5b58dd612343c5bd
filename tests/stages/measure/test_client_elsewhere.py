"""A run whose load comes over ssh: it is whole, says so, and leaves nothing there, however it ends."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from measured_runs import load_and_measure
from ssh_server import SshServer, descendants, run_ssh_server
from waiting import wait_until

from knobscope.errors import UserError
from knobscope.specs import Dbms, Workload
from knobscope.stages.prepare import Snapshot

pytestmark = pytest.mark.real

CONFIGURATION = {"synchronous_commit": "off", "fsync": True, "shared_buffers": 4096}


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with run_ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


def find_client(server: SshServer) -> int | None:
    """Return the JVM of the load client among what the ssh server has started."""
    return next((pid for pid, command in descendants(server.pid).items() if command.startswith("java ")), None)


def network_of(pid: int) -> str:
    return str(Path(f"/proc/{pid}/ns/net").readlink())


def test_the_load_comes_over_ssh(
    postgresql: Dbms,
    short_workload: Workload,
    prepare: Callable[..., Snapshot],
    open_directory: Path,
    server: SshServer,
) -> None:
    prepare(postgresql, short_workload, open_directory)
    seen: dict[str, Any] = {}

    def look() -> None:
        assert wait_until(lambda: find_client(server) is not None)
        client = find_client(server)
        assert client is not None
        seen.update(network=network_of(client), arguments=Path(f"/proc/{client}/cmdline").read_text())

    watcher = Thread(target=look, daemon=True)
    watcher.start()
    record = load_and_measure(postgresql, short_workload, open_directory, CONFIGURATION, client=server.host)
    watcher.join()
    run = record["run"]
    assert run["status"] == "ok", run
    assert len(record["intervals"]) == 4
    assert run["operations"] == sum(row["ops"] for row in record["intervals"]) > 0
    assert {row["knob"]: row["effective"] for row in record["effective_values"]}["synchronous_commit"] == "off"
    # it ran below the ssh server, outside of the network that the DBMS has to itself
    assert seen["network"] == network_of(os.getpid())
    assert str(server.folder / "far") in seen["arguments"]
    assert run["client_host"] == "127.0.0.1"
    assert os.uname().release in run["client_machine"]
    assert abs(run["client_clock_offset_us"]) <= run["client_clock_error_us"]
    assert abs(run["client_clock_change_us"]) <= 2 * run["client_clock_error_us"] + run["client_round_trip_us"]
    assert run["client_round_trip_us"] > 1
    assert server.left_over() == []
    assert find_client(server) is None


@pytest.mark.long
def test_a_client_that_is_killed_over_there_is_a_disturbance(
    postgresql: Dbms, short_workload: Workload, open_directory: Path, server: SshServer
) -> None:
    long = short_workload.model_copy(update={"measure_s": 60.0})

    def kill() -> None:
        assert wait_until(lambda: find_client(server) is not None)
        client = find_client(server)
        assert client is not None
        time.sleep(2)
        os.kill(client, signal.SIGKILL)

    Thread(target=kill, daemon=True).start()
    run = load_and_measure(postgresql, long, open_directory, CONFIGURATION, client=server.host)["run"]
    assert run["status"] == "failed_run"
    assert run["disturbance"] == "the load client was ended by SIGKILL, which knobscope did not send"
    assert server.left_over() == []


@pytest.mark.long
def test_a_machine_that_is_lost_is_a_disturbance(
    postgresql: Dbms, short_workload: Workload, open_directory: Path, server: SshServer
) -> None:
    long = short_workload.model_copy(update={"measure_s": 60.0})

    def cut() -> None:
        assert wait_until(lambda: find_client(server) is not None)
        time.sleep(2)
        for pid, command in descendants(server.pid).items():
            if command.startswith("sshd: "):
                os.kill(pid, signal.SIGKILL)

    Thread(target=cut, daemon=True).start()
    run = load_and_measure(postgresql, long, open_directory, CONFIGURATION, client=server.host)["run"]
    assert run["status"] == "failed_run"
    assert run["disturbance"].startswith("the connection to 127.0.0.1 was lost")
    assert wait_until(lambda: server.left_over() == [])


@pytest.mark.long
def test_a_machine_that_cannot_be_reached_ends_the_block_and_blames_no_configuration(
    postgresql: Dbms, short_workload: Workload, open_directory: Path, server: SshServer
) -> None:
    gone = SshServer(server.pid, server.host.model_copy(update={"port": 1}), server.folder)
    with pytest.raises(UserError, match=r"cannot connect to 127\.0\.0\.1, port 1: .*Connection refused"):
        load_and_measure(postgresql, short_workload, open_directory, CONFIGURATION, client=gone.host)
