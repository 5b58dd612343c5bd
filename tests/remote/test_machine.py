"""Another machine, which is this one behind an ssh server of its own: files, clock, tunnel, commands, and their end."""

import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from pathlib import Path

import pytest
from ssh_server import SshServer, descendants, run_ssh_server
from waiting import wait_until

from knobscope.errors import UserError
from knobscope.processes import open_network
from knobscope.remote import RemoteError, RemoteMachine, open_machine

pytestmark = pytest.mark.real


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SshServer]:
    with run_ssh_server(tmp_path_factory.mktemp("ssh")) as running:
        yield running


@pytest.fixture
def machine(server: SshServer, tmp_path: Path) -> Iterator[RemoteMachine]:
    with open_machine(server.host, tmp_path / "ssh", None) as opened:
        yield opened


def test_files_and_commands_and_clock(machine: RemoteMachine, server: SshServer) -> None:
    assert machine.write("a", "text ü").read_text() == "text ü"  # the other machine is this one
    assert machine.read("a") == "text ü"
    assert machine.private.stat().st_mode & 0o777 == 0o700
    process = machine.start(["sh", "-c", "echo $0 $1; exit 7", "it's", "$HOME `id`"], stdout=subprocess.PIPE)
    assert process.stdout is not None
    assert (process.stdout.read(), process.wait()) == (b"it's $HOME `id`\n", 7)
    offset = machine.compare_clocks()
    assert abs(offset.offset_ns) <= offset.error_ns  # both clocks are the same
    assert machine.time_round_trip() > 1
    with pytest.raises(RemoteError, match="No such file"):
        machine.read("missing")


def test_jars_are_copied_once_and_damaged_ones_again(machine: RemoteMachine, tmp_path: Path) -> None:
    (tmp_path / "x.jar").write_bytes(b"content\n\0")
    files = {"lib/x.jar": tmp_path / "x.jar"}
    copy = machine.provide(files) / "lib/x.jar"
    assert copy.read_bytes() == b"content\n\0"
    written = copy.stat().st_mtime_ns
    machine.provide(files)
    assert copy.stat().st_mtime_ns == written
    copy.write_text("damaged")
    machine.provide(files)
    assert copy.read_bytes() == b"content\n\0"


@pytest.mark.parametrize("in_own_network", [False, True])
def test_a_tunnel_leads_into_the_network_of_the_run(server: SshServer, tmp_path: Path, in_own_network: bool) -> None:
    if in_own_network and os.geteuid() != 0:
        pytest.skip("needs root")
    with open_network() if in_own_network else nullcontext() as network:
        require_tunnel(server, tmp_path / "ssh", network)


def require_tunnel(server: SshServer, directory: Path, network: int | None) -> None:
    holder = [] if network is None else ["nsenter", f"--net=/proc/{os.getpid()}/fd/{network}"]
    answer = "import socket; s=socket.create_server(('127.0.0.1',0)); print(s.getsockname()[1],flush=True); "
    listener = subprocess.Popen(
        [*holder, sys.executable, "-c", answer + "c=s.accept()[0]; c.sendall(c.recv(9)[::-1])"], stdout=subprocess.PIPE
    )
    assert listener.stdout is not None
    port = int(listener.stdout.readline())
    with open_machine(server.host, directory, network) as machine:
        far = machine.open_tunnel(port)
        with socket.create_connection(("127.0.0.1", far)) as client:
            client.sendall(b"abc")
            assert client.recv(9) == b"cba"
    assert listener.wait() == 0
    with socket.socket() as client:
        assert client.connect_ex(("127.0.0.1", far)) != 0


def test_nothing_is_left_when_it_is_closed(server: SshServer, tmp_path: Path) -> None:
    with open_machine(server.host, tmp_path / "ssh", None) as machine:
        process = machine.start(["sleep", "1000"])
        assert wait_until(lambda: "sleep 1000 " in descendants(server.pid).values())
    assert server.left_over() == []
    assert [command for command in descendants(server.pid).values() if "sleep" in command] == []
    process.wait()


_HOLDER = """
import json, sys, time
from pathlib import Path
from knobscope.remote import open_machine
from knobscope.specs import ClientHost
with open_machine(ClientHost(**json.loads(sys.argv[1])), Path(sys.argv[2]), None) as machine:
    machine.write("secret", "password")
    process = machine.start(["sh", "-c", "sleep 1000 & setsid sleep 1001 & wait"])
    time.sleep(1000)
"""


def test_nothing_is_left_after_a_kill(server: SshServer, tmp_path: Path) -> None:
    """Neither processes, though one has a session of its own, nor files: a password is among them."""
    arguments = [sys.executable, "-c", _HOLDER, server.host.model_dump_json(), str(tmp_path / "ssh")]
    holder = subprocess.Popen(arguments)

    def sleepers() -> list[int]:
        return [pid for pid, command in descendants(server.pid).items() if command.startswith("sleep 100")]

    assert wait_until(lambda: len(sleepers()) == 2)
    pids = sleepers()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    assert wait_until(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert wait_until(lambda: server.left_over() == [])
    assert wait_until(lambda: descendants(server.pid) == {})


def test_a_host_whose_key_is_not_known_is_refused(server: SshServer, tmp_path: Path) -> None:
    (tmp_path / "known_hosts").write_text("")
    stranger = server.host.model_copy(update={"known_hosts": str(tmp_path / "known_hosts")})
    with (
        pytest.raises(UserError, match=r"cannot log in to 127\.0\.0\.1 .*Host key verification failed"),
        open_machine(stranger, tmp_path / "ssh", None),
    ):
        pass


def test_without_a_login_it_says_so_and_asks_nothing(server: SshServer, tmp_path: Path) -> None:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", tmp_path / "other"], check=True)
    stranger = server.host.model_copy(update={"identity": str(tmp_path / "other")})
    with (
        pytest.raises(UserError, match=r"cannot log in to 127\.0\.0\.1 .*Permission denied"),
        open_machine(stranger, tmp_path / "ssh", None),
    ):
        pass


def test_a_directory_that_others_may_write_to_is_refused(server: SshServer, tmp_path: Path) -> None:
    (tmp_path / "open").mkdir()
    (tmp_path / "open").chmod(0o777)
    host = server.host.model_copy(update={"directory": str(tmp_path / "open")})
    with pytest.raises(UserError, match="is no directory that only user"), open_machine(host, tmp_path / "ssh", None):
        pass
