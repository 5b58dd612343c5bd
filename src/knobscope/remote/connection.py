"""One ssh connection to another machine, and what goes through it: commands and tunnels.

Specs name the machine and what to run there, and nothing of them comes near a shell: what a login shell sees over there
is one fixed line, and the command itself follows on its standard input.
"""

import contextlib
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import IO, Any

from knobscope.errors import UserError
from knobscope.processes import capture, read_tail, supervise
from knobscope.specs import ClientHost

_PROXY = Path(__file__).with_name("proxy.py")
#: Reads one line, a JSON list, and becomes that command; its standard input stays what it was.
_LAUNCHER = (
    'exec python3 -I -S -c "import json,os,sys; command=json.loads(sys.stdin.buffer.raw.readline()); '
    'os.execvp(command[0],command)"'
)
_LOGIN_S = 20
_REQUEST_S = 10


class RemoteError(Exception):
    """The other machine does not do what it was asked for, or is gone."""


class Connection:
    """A connection that is open until `close`, or until this process ends, however it does.

    `directory`: a private one of ours, for ssh's socket and log. `network`: descriptor of the network namespace in
    which tunnels end, ours without one. Raises UserError, with ssh's words, when there is no way to log in.
    """

    def __init__(self, host: ClientHost, directory: Path, network: int | None) -> None:
        ssh = shutil.which("ssh")
        if ssh is None:
            raise UserError("no ssh program on PATH, which `client` of the study needs; apt-get install openssh-client")
        self._host, self._log, self._control = host, directory / "ssh.log", directory / "ssh"
        self._shared = [ssh, "-F", "none", "-o", "BatchMode=yes", "-o", f"ControlPath={self._control}"]
        command = [*self._shared, *_login_options(host), "-N", host.host]
        with self._log.open("wb") as log:
            self._process = supervise(
                command, network=network, stdout=log, stderr=log, cwd="/", env=_environment(host, network)
            )
        try:
            self._wait_open()
        except BaseException:
            self.close()
            raise

    def _wait_open(self) -> None:
        deadline = time.monotonic() + _LOGIN_S
        while not self._control.exists():
            if self._process.poll() is not None or time.monotonic() > deadline:
                raise UserError(
                    f"cannot log in to {self._host.host} by ssh, where the load should come from (`client` of the "
                    f"study): {self.log_tail() or f'no answer within {_LOGIN_S} s'}"
                )
            time.sleep(0.02)

    def log_tail(self) -> str:
        """Return ssh's own last words."""
        return "; ".join(read_tail(self._log, 4).split("\n")).strip("; \r")

    def open_tunnel(self, target: str) -> int:
        """Let a free port of the other machine's 127.0.0.1 lead to a `HOST:PORT` or socket of ours; return the port."""
        forward = ["-O", "forward", "-R", f"127.0.0.1:0:{target}"]
        process = supervise(
            [*self._shared, *forward, self._host.host], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd="/"
        )
        try:
            code, output, complaint = capture(process, _REQUEST_S)
        except subprocess.TimeoutExpired as error:
            raise RemoteError(f"{self._host.host} opened no tunnel within {_REQUEST_S} s") from error
        if code != 0 or not output.strip().isdigit():
            raise UserError(
                f"{self._host.host} opens no tunnel ({complaint.strip() or self.log_tail()}); its sshd has to allow "
                "remote forwarding (AllowTcpForwarding)"
            )
        return int(output)

    def start(
        self,
        command: list[str],
        /,
        *,
        stdout: IO[Any] | int | None = None,
        stderr: IO[Any] | int | None = None,
    ) -> "subprocess.Popen[bytes]":
        """Start a command on the other machine; its standard input ends when the returned process, or we, do."""
        # without the shared connection ssh would make one of its own, past all that was said about that one
        no_other = ["-o", "ProxyCommand=false", "-o", "ControlMaster=no", "-T", "-q"]
        process = supervise(
            [*self._shared, *no_other, self._host.host, _LAUNCHER],
            stdin=subprocess.PIPE, stdout=stdout, stderr=stderr, cwd="/",
        )  # fmt: skip
        assert process.stdin is not None  # noqa: S101
        with contextlib.suppress(BrokenPipeError):  # its exit code tells that it has ended
            process.stdin.write(json.dumps(command).encode() + b"\n")
            process.stdin.flush()
        return process

    def close(self) -> None:
        """End the connection, and with it all that goes through it."""
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGUSR1)
        self._process.wait()
        self._control.unlink(missing_ok=True)


def _login_options(host: ClientHost) -> list[str]:
    proxy = shlex.join([sys.executable, "-I", "-S", str(_PROXY)]).replace("%", "%%")
    options = {
        "StrictHostKeyChecking": "yes",
        "ProxyCommand": proxy,
        "ProxyUseFdpass": "yes",
        "ControlMaster": "yes",
        "ControlPersist": "no",
        "ConnectTimeout": "10",
        "ServerAliveInterval": "5",
        "ServerAliveCountMax": "3",
        "Compression": "no",
    }
    if host.known_hosts is not None:
        options |= {"UserKnownHostsFile": host.known_hosts, "GlobalKnownHostsFile": "none"}
    if host.identity is not None:
        options |= {"IdentityFile": host.identity, "IdentitiesOnly": "yes"}
    named = [part for name, value in options.items() for part in ("-o", f"{name}={value}")]
    return [*named, "-p", str(host.port), *(["-l", host.user] if host.user is not None else [])]


def _environment(host: ClientHost, network: int | None) -> dict[str, str]:
    """Return what ssh's proxy reads; the command that ssh hands to a shell is the same for every host."""
    outside = {} if network is None else {"KNOBSCOPE_SSH_NETWORK": f"/proc/{os.getpid()}/ns/net"}
    named = {"KNOBSCOPE_SSH_HOST": host.host, "KNOBSCOPE_SSH_PORT": str(host.port)}
    return {**os.environ, **named, **outside, "SHELL": "/bin/sh"}
