"""An ssh server of a test's own, on a port of 127.0.0.1, which lets this user in by a key that nobody else has."""

import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from knobscope.servers.instance import find_free_ports
from knobscope.specs import ClientHost

_OPTIONS = """\
AddressFamily inet
AuthorizedKeysFile {folder}/authorized_keys
HostKey {folder}/host_key
ListenAddress 127.0.0.1:{port}
PasswordAuthentication no
PermitRootLogin yes
PidFile none
StrictModes no
UsePAM no
"""


@dataclass(frozen=True)
class SshServer:
    """A running server: its process, the client host that leads to it, and the folder for that one's files."""

    pid: int
    host: ClientHost
    folder: Path

    def left_over(self) -> list[str]:
        """Return what runs have left of files, beside the jars."""
        return [path.name for path in self.folder.glob("far/*") if not path.name.startswith("clients-")]


def descendants(root: int) -> dict[int, str]:
    """Return the processes below one, by number, with their command lines."""
    parents, commands = {}, {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parents[int(entry.name)] = int((entry / "stat").read_text().rsplit(")", 1)[1].split()[1])
            commands[int(entry.name)] = (entry / "cmdline").read_text().replace("\0", " ")
        except (FileNotFoundError, ProcessLookupError):
            continue
    found: dict[int, str] = {}
    queue = [root]
    while queue:
        above = queue.pop()
        below = [pid for pid, parent in parents.items() if parent == above]
        found |= {pid: commands.get(pid, "") for pid in below}
        queue += below
    return found


def _make_key(path: Path) -> str:
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", path], check=True)
    return path.with_suffix(".pub").read_text()


@contextmanager
def run_ssh_server(folder: Path) -> Iterator[SshServer]:
    """Yield a server whose keys and files lie in a folder; it is ended at the end, with all its sessions."""
    sshd = shutil.which("sshd", path=f"{os.environ['PATH']}:/usr/sbin")
    if sshd is None:
        pytest.skip("needs sshd (openssh-server)")
    if os.geteuid() == 0:
        Path("/run/sshd").mkdir(mode=0o755, exist_ok=True)  # sshd wants it, and the system makes it at its start
    port = find_free_ports()[0]
    (folder / "authorized_keys").write_text(_make_key(folder / "login_key"))
    (folder / "known_hosts").write_text(f"[127.0.0.1]:{port} {_make_key(folder / 'host_key')}")
    (folder / "sshd_config").write_text(_OPTIONS.format(folder=folder, port=port))
    log = folder / "sshd.log"
    process = subprocess.Popen([sshd, "-D", "-f", folder / "sshd_config", "-E", log])
    try:
        _wait_for_port(port, log)
        host = ClientHost(
            host="127.0.0.1",
            port=port,
            identity=str(folder / "login_key"),
            known_hosts=str(folder / "known_hosts"),
            directory=str(folder / "far"),
        )
        yield SshServer(process.pid, host, folder)
    finally:
        process.terminate()
        process.wait()


def _wait_for_port(port: int, log: Path) -> None:
    deadline = time.monotonic() + 120
    while True:
        with socket.socket() as client:
            if client.connect_ex(("127.0.0.1", port)) == 0:
                return
        assert time.monotonic() < deadline, log.read_text()
        time.sleep(0.02)
