"""Another machine for the time of a run: files, clock, tunnel and commands, all gone at the end."""

import contextlib
import json
import os
import select
import statistics
import subprocess
import time
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import IO, Any

from knobscope.errors import UserError
from knobscope.processes import read_tail
from knobscope.remote.clocks import ClockOffset, compare_clocks
from knobscope.remote.connection import Connection, RemoteError
from knobscope.remote.echo import echo_at
from knobscope.specs import ClientHost

_AGENT = Path(__file__).with_name("agent.py")
_KEEPER = Path(__file__).parents[1] / "processes" / "keeper.py"
_PYTHON = ("python3", "-I", "-S")
_ANSWER_S = 30
_END_S = 15
_ECHOES = 50


class RemoteMachine:
    """The machine at the other end of a connection. Its directory `private` belongs to us alone and ends with us."""

    def __init__(self, host: ClientHost, connection: Connection, directory: Path) -> None:
        self._connection, self._directory = connection, directory
        self.name = host.host
        command = [*_PYTHON, "-c", _AGENT.read_text(encoding="utf-8"), host.directory]
        with (directory / "agent.log").open("wb") as log:
            self._agent = connection.start(command, stdout=subprocess.PIPE, stderr=log)
        self._unread = b""
        try:
            greeting = self._next_answer()
        except RemoteError as error:
            complaint = read_tail(directory / "agent.log", 1)
            raise UserError(f"{self.name}, where the load should come from: {complaint or error}") from error
        if greeting["java"] is None:
            raise UserError(f"{self.name} has no java on its PATH, which the load client needs (version 17 or later)")
        self.private, self.description = Path(greeting["private"]), str(greeting["machine"])
        self._base = Path(greeting["base"])
        self._keeper = self.write("keeper.py", _KEEPER.read_text(encoding="utf-8"))

    def ask(self, request: Mapping[str, Any], content: bytes = b"") -> Any:
        """Return the answer of the agent; RemoteError: it says why not, or says nothing any more."""
        assert self._agent.stdin is not None  # noqa: S101
        try:
            self._agent.stdin.write(json.dumps(request).encode() + b"\n" + content)
            self._agent.stdin.flush()
        except OSError as error:
            raise RemoteError(f"the connection to {self.name} was lost") from error
        return self._next_answer()

    def _next_answer(self) -> Any:
        """Return what the next line says."""
        assert self._agent.stdout is not None  # noqa: S101
        deadline = time.monotonic() + _ANSWER_S
        while b"\n" not in self._unread:
            ready, _, _ = select.select([self._agent.stdout], [], [], max(0.0, deadline - time.monotonic()))
            read = os.read(self._agent.stdout.fileno(), 65536) if ready else b""
            if not read:
                why = "was lost" if ready else f"is silent for {_ANSWER_S} s"
                raise RemoteError(f"the connection to {self.name} {why}")
            self._unread += read
        line, _, self._unread = self._unread.partition(b"\n")
        answer = json.loads(line)
        if "error" in answer:
            raise RemoteError(f"{self.name}: {answer['error']}")
        return answer["ok"]

    def tell_time(self) -> int:
        """Return what its clock says, in nanoseconds since 1970."""
        return int(self.ask({"do": "time"}))

    def provide(self, files: Mapping[str, Path]) -> Path:
        """Return a directory with these files, by their names in it; what is there is not sent again.

        It is named after the checksums of all of them, and stays when the machine is left.
        """
        digests = {name: sha256(path.read_bytes()).hexdigest() for name, path in files.items()}
        folder = f"clients-{sha256(json.dumps(digests, sort_keys=True).encode()).hexdigest()[:16]}"
        digests_by_path = {f"{folder}/{name}": digest for name, digest in digests.items()}
        for lacking in self.ask({"do": "lacking", "files": digests_by_path}):
            self._send(lacking, files[lacking.removeprefix(f"{folder}/")].read_bytes())
        return self._base / folder

    def write(self, name: str, text: str) -> Path:
        """Write a file of the private directory; return its path over there."""
        self._send(f"{self.private.name}/{name}", text.encode())
        return self.private / name

    def _send(self, name: str, content: bytes) -> None:
        self.ask({"do": "write", "name": name, "size": len(content)}, content)

    def read(self, name: str) -> str:
        """Return the text of a file of the private directory."""
        return str(self.ask({"do": "read", "name": f"{self.private.name}/{name}"}))

    def start(
        self,
        command: list[str],
        /,
        *,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
        **_of_this_machine: object,
    ) -> "subprocess.Popen[bytes]":
        """Start a command under a keeper: it ends, with all that it starts, when the connection does.

        Directory and environment are what a login over there gives; those that are asked for are of this machine.
        """
        keeper_command = [*_PYTHON, str(self._keeper), "--lifeline", "0", "--", *command]
        return self._connection.start(keeper_command, stdout=stdout, stderr=stderr)

    def open_tunnel(self, port: int) -> int:
        """Return a port of 127.0.0.1 over there that leads to a port of 127.0.0.1 here."""
        return self._connection.open_tunnel(f"127.0.0.1:{port}")

    def compare_clocks(self) -> ClockOffset:
        """Return how far its clock is ahead of ours."""
        return compare_clocks(self.tell_time)

    def time_round_trip(self) -> float:
        """Return the microseconds (median) that a byte takes from there through a tunnel to us, and back."""
        socket = self._directory / "echo"
        with echo_at(socket):
            port = self._connection.open_tunnel(str(socket))
            durations_ns = self.ask({"do": "echoes", "port": port, "times": _ECHOES})
        return float(statistics.median(durations_ns)) / 1000

    def leave(self) -> None:
        """End the agent, which waits for the end of what was started and removes the private directory."""
        assert self._agent.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):
            self._agent.stdin.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._agent.wait(_END_S)
        assert self._agent.stdout is not None  # noqa: S101
        self._agent.stdout.close()


@contextlib.contextmanager
def open_machine(host: ClientHost, directory: Path, network: int | None) -> Iterator[RemoteMachine]:
    """Yield a machine that was logged in to; nothing that was started there is left at the end.

    `directory`: a new private one of ours; `network` as for Connection. UserError: there is no way in, or what is
    needed there is missing. RemoteError, also later: it stopped answering.
    """
    directory.mkdir(mode=0o700)
    connection = Connection(host, directory, network)
    try:
        machine = RemoteMachine(host, connection, directory)
        try:
            yield machine
        finally:
            machine.leave()
    finally:
        connection.close()
