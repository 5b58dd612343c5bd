"""A server's life: initialise a data directory, start, wait until it answers, stop or kill."""

import contextlib
import os
import signal
import subprocess
import time
from collections.abc import Sequence
from glob import glob
from pathlib import Path
from typing import BinaryIO

from knobscope.processes import OutputLimitError, capture, connects, read_tail
from knobscope.servers.config import write_config_files
from knobscope.servers.instance import Configuration, Instance
from knobscope.specs import Lifecycle, ask_version

#: Until one check whether the server answers counts as a no.
_CHECK_S = 10
#: What a message quotes of that check, from its end: isql's last line only says where it stopped, not why.
_SAID_LONGEST = 300
#: What ends a server that was to end by itself: others may have sent them, or it has crashed.
_KILLED_BY = (signal.SIGKILL, signal.SIGABRT, signal.SIGBUS, signal.SIGSEGV)
#: Until a command that makes data, sets up or stops a server counts as stuck.
_COMMAND_S = 3600
#: The end of a log file that is quoted.
_QUOTED_BYTES = 1 << 16


class ServerFailedError(Exception):
    """A server did not start, did not answer in time, or died; `log_tail` holds its own last lines.

    `exit_code` is that of the process, where it has ended.
    """

    def __init__(self, message: str, log_tail: str, exit_code: int | None = None) -> None:
        super().__init__(message)
        self.log_tail = log_tail
        self.exit_code = exit_code


def initialise_data(instance: Instance, configuration: Configuration, log: Path) -> None:
    """Make the data directory with the DBMS's own tool; load-time knobs become its arguments."""
    life = instance.dbms.lifecycle
    if life is None or life.init is None:
        return
    write_config_files(instance, configuration, "init")
    command = instance.fill_command(life.init, configuration, "init")
    run_command(instance, command, log, instance.environment_with(configuration, "init"))


def open_log(path: Path) -> BinaryIO:
    """Open a log for more lines; only we can read it, since servers write all sorts of things there."""
    return os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600), "ab")


def run_command(instance: Instance, command: list[str], log: Path, env: dict[str, str] | None = None) -> None:
    """Run a command as the server's user until it ends; raises ServerFailedError with its words when it fails."""
    with open_log(log) as output:
        process = instance.start(command, stdout=output, stderr=output, env=env)
    try:
        code = process.wait(_COMMAND_S)
    except subprocess.TimeoutExpired as error:
        process.send_signal(signal.SIGUSR1)
        process.wait()
        raise ServerFailedError(f"{command[0]} did not end within {_COMMAND_S} s", read_tail(log)) from error
    if code != 0:
        raise ServerFailedError(f"{command[0]} ended with exit code {code}", read_tail(log), code)


def read_version(instance: Instance) -> str | None:
    """Return the version as the DBMS's own program prints it, None for one without a program."""
    dbms = instance.dbms
    return None if dbms.version is None else ask_version(dbms.version, dbms.programs, dbms.paths)


def _read_sizes(pattern: str | None) -> dict[str, int]:
    """Return the sizes of the files that match, in bytes."""
    sizes = {}
    for path in glob(pattern) if pattern is not None else []:  # noqa: PTH207 - the pattern is absolute
        with contextlib.suppress(OSError):  # removed meanwhile, or a link to nothing
            sizes[path] = Path(path).stat().st_size
    return sizes


class Server(contextlib.AbstractContextManager["Server"]):
    """A running server. Use as a context manager: it is gone at the end, whatever happened."""

    def __init__(
        self,
        instance: Instance,
        life: Lifecycle,
        configuration: Configuration,
        log: Path,
        arguments: Sequence[str] = (),
    ) -> None:
        self.instance = instance
        self.life = life
        self.log = log
        self._said = ""  # by the command that asks whether it is ready
        self._own_log = None if life.log is None else instance.fill(life.log)
        self._sizes = _read_sizes(self._own_log)  # a copy of loaded data has what was logged while it was loaded
        write_config_files(instance, configuration, "start")
        command = [*instance.fill_command(life.start, configuration, "start"), *map(instance.fill, arguments)]
        with open_log(log) as output:
            env = instance.environment_with(configuration, "start")
            self.process = instance.start(command, stdout=output, stderr=output, env=env, end_signal=life.discard)

    @property
    def pid(self) -> int:
        """Root of the server's process tree (its keeper)."""
        return self.process.pid

    @property
    def is_alive(self) -> bool:
        """Whether the server still runs."""
        return self.process.poll() is None

    def wait_ready(self) -> None:
        """Wait until the server answers; raises ServerFailedError with its own words when it does not."""
        deadline = time.monotonic() + self.life.ready_timeout_s
        while self.is_alive:
            if self._answers():
                return
            if time.monotonic() > deadline:
                words = f"; {self.life.ready[0]} says: {self._said}" if self.life.ready and self._said else ""
                raise ServerFailedError(f"no answer within {self.life.ready_timeout_s} s{words}", self.quote())
            time.sleep(0.02)
        code = self.process.returncode
        raise ServerFailedError(f"the server ended with exit code {code}", self.quote(), code)

    def quote(self) -> str:
        """Return the last lines of its log, those that it wrote to files of its own since it started included.

        Their names are in the spec. The server's user reads them, since that user may have put a link in their place.
        """
        sizes = _read_sizes(self._own_log)
        for path, size in sizes.items():
            known = self._sizes.get(path, 0)
            begin = max(known if known <= size else 0, size - _QUOTED_BYTES)
            if begin < size:
                self._add_to_log(["/usr/bin/tail", "-c", f"+{begin + 1}", "--", path])
        self._sizes = sizes
        return read_tail(self.log)

    def _add_to_log(self, command: list[str]) -> None:
        """Add what a command prints to the log; one that hangs is ended."""
        with open_log(self.log) as output:
            process = self.instance.start(command, stdout=output, stderr=output)
        try:
            process.wait(_CHECK_S)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGUSR1)
            process.wait()

    def _answers(self) -> bool:
        """Ask once whether it is ready; a check that hangs counts as no."""
        if self.life.ready is None:
            return connects(self.instance.port, self.instance.network)
        command = self.instance.fill_command(self.life.ready, {}, "start")
        check = self.instance.start(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        try:
            code, said, _ = capture(check, _CHECK_S)
            self._said = " ".join(said.split())[-_SAID_LONGEST:]
            return code == 0
        except subprocess.TimeoutExpired:
            return False
        except OutputLimitError as error:
            raise ServerFailedError(f"{command[0]}, which `ready` names, {error}", self.quote()) from error

    def set_up(self) -> None:
        """Run what the spec wants done once, before data is loaded."""
        for command in self.life.setup:
            run_command(self.instance, self.instance.fill_command(command, {}, "init"), self.log)

    def stop(self) -> None:
        """Ask the server to end in good order, so that its data is a snapshot; raises when it does not."""
        if self.life.stop.command is not None:
            run_command(self.instance, self.instance.fill_command(self.life.stop.command, {}, "start"), self.log)
        else:
            self.process.send_signal(getattr(signal, f"SIG{self.life.stop.signal}"))
        try:
            code = self.process.wait(self.life.stop.timeout_s)
        except subprocess.TimeoutExpired as error:
            raise ServerFailedError(f"no end within {self.life.stop.timeout_s} s", self.quote()) from error
        if code < 0 or code - 128 in _KILLED_BY:
            raise ServerFailedError(f"the server ended with exit code {code} while it stopped", self.quote(), code)

    def kill(self) -> None:
        """End the server and all its children at once; its data directory is thrown away afterwards."""
        if self.is_alive:
            self.process.send_signal(signal.SIGUSR1)
            self.process.wait()

    def __exit__(self, *_: object) -> None:
        """Leave nothing behind."""
        self.kill()
