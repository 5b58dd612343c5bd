"""Starts processes that cannot outlive us, however we end."""

import os
import select
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import IO, Any, cast

from knobscope.errors import UserError
from knobscope.processes.keeper import SET_PREFIX

#: The pipeline's process number, set by the Snakefile for its jobs.
PIPELINE_VARIABLE = "KNOBSCOPE_PIPELINE_PID"

#: What a command may write that is asked something: the longest catalogue of settings has 2 MB.
CAPTURED_BYTES = 16 << 20
_CHUNK_BYTES = 1 << 16
_KEEPER = Path(__file__).with_name("keeper.py")


class OutputLimitError(Exception):
    """A command wrote more than it may; it was ended."""

    def __init__(self, limit_bytes: int) -> None:
        super().__init__(f"wrote more than {limit_bytes / (1 << 20):g} MiB of output and was ended")


@dataclass(frozen=True)
class Sandbox:
    """Namespaces that the commands of a run share, and nobody else has."""

    first: int  # descriptor of the process that they belong to
    covers: Mapping[Path, Path]  # directories, and what covers them there


@cache
def _lifeline() -> tuple[int, int]:
    """A pipe that nobody writes to: its write end closes when this process is gone."""
    return os.pipe()


def lifeline() -> int:
    """Return a descriptor that reads EOF when this process is gone."""
    return _lifeline()[0]


def supervise(
    command: list[str],
    *,
    user: str | None = None,
    network: int | None = None,
    sandbox: Sandbox | None = None,
    reach: Iterable[Path] = (),
    end_signal: str | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: IO[Any] | int | None = None,
    stderr: IO[Any] | int | None = None,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
    keep: Iterable[str] = (),
) -> "subprocess.Popen[bytes]":
    """Start a command under a keeper; the command and all its descendants end when this process does.

    The keeper's pid is what the returned object knows; signals TERM, INT, QUIT and HUP sent to it go to the command,
    its exit code is the command's (128 + signal when killed, 127 when it cannot be run); USR1 ends everything. With
    `user` (root only) the command runs as that user, who gets at the paths in `reach` whatever directories they lie
    in, and of our environment only what is no secret, with what `env` adds to it, and its variables `keep`; with
    `network` in that network namespace, with `sandbox` in those of its run, where it sees of covered directories only
    the paths in `reach`; with `end_signal` (a name without SIG) it gets that signal before it is killed.
    """
    options = ["--end-signal", end_signal] if end_signal else []
    kept = set(keep)
    added = {name: text for name, text in (env or {}).items() if os.environ.get(name) != text or name in kept}
    if env is not None:  # the command alone gets them: the keeper may be root, and LD_PRELOAD would be code of a spec
        own = {name: os.environ[name] for name in env if name in os.environ}
        env = own | {f"{SET_PREFIX}{name}": text for name, text in added.items()}
    options += [f"--set={name}" for name in added]
    options += ["--user", user] if user is not None else []
    if sandbox is not None:
        options += ["--sandbox", str(sandbox.first), *(f"--cover={on}={by}" for on, by in sandbox.covers.items())]
    if network is not None:
        options += ["--network", str(network)]
    options += [f"--reach={path}" for path in reach]
    passed = [lifeline(), *([network] if network is not None else []), *([sandbox.first] if sandbox else [])]
    keeper = [sys.executable, "-I", "-S", str(_KEEPER), "--lifeline", str(passed[0]), *options, "--", *command]
    return subprocess.Popen(
        keeper,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env=env,
        pass_fds=passed,
    )


def read_output(
    process: "subprocess.Popen[bytes]", limit_bytes: int, timeout_s: float | None = None
) -> Iterator[tuple[IO[bytes], bytes]]:
    """Yield (pipe, chunk) of what a supervised command writes to its pipes, until it closes them.

    Raises OutputLimitError as soon as it has written more than the limit, on all pipes together, and
    subprocess.TimeoutExpired when it takes too long. It is ended then, with all it started; so it is when the caller
    stops reading. The pipes are closed afterwards.
    """
    deadline = None if timeout_s is None else time.monotonic() + timeout_s
    written, is_whole = 0, False
    with ExitStack() as stack, selectors.DefaultSelector() as waiting:
        for pipe in filter(None, (process.stdout, process.stderr)):
            waiting.register(stack.enter_context(pipe), selectors.EVENT_READ)
        try:
            while waiting.get_map():
                ready = waiting.select(None if deadline is None else max(0.0, deadline - time.monotonic()))
                if not ready and timeout_s is not None:
                    raise subprocess.TimeoutExpired(process.args, timeout_s)
                for key, _ in ready:
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        waiting.unregister(key.fileobj)
                    written += len(chunk)
                    if written > limit_bytes:
                        raise OutputLimitError(limit_bytes)
                    yield cast("IO[bytes]", key.fileobj), chunk
            is_whole = True
        finally:
            if not is_whole:
                process.send_signal(signal.SIGUSR1)


def capture(
    process: "subprocess.Popen[bytes]", timeout_s: float, limit_bytes: int = CAPTURED_BYTES
) -> tuple[int, str, str]:
    """Wait for a supervised command with pipes; return exit code, output and errors.

    Raises subprocess.TimeoutExpired when it takes too long and OutputLimitError when it writes too much; it is ended
    then, with all it started.
    """
    deadline = time.monotonic() + timeout_s
    chunks: dict[object, list[bytes]] = {process.stdout: [], process.stderr: []}
    try:
        for pipe, chunk in read_output(process, limit_bytes, timeout_s):
            chunks[pipe].append(chunk)
        process.wait(max(0.0, deadline - time.monotonic()))
    except (OutputLimitError, subprocess.TimeoutExpired):
        process.send_signal(signal.SIGUSR1)
        process.wait()
        raise
    output, errors = (
        b"".join(chunks[pipe]).decode(errors="replace") if pipe else "" for pipe in (process.stdout, process.stderr)
    )
    return process.returncode, output, errors


def follow_pipeline() -> None:
    """End this process as soon as the pipeline that started it is gone (it may have been killed with -9).

    Without `KNOBSCOPE_PIPELINE_PID` in the environment there is no pipeline to follow.
    """
    pid = os.environ.get(PIPELINE_VARIABLE)
    if pid is None:
        return
    try:
        descriptor = os.pidfd_open(int(pid))
    except ProcessLookupError:
        os._exit(137)
    except (ValueError, OverflowError, OSError) as error:
        raise UserError(
            f"{PIPELINE_VARIABLE} is {pid!r}; expected the number of a process, or no such variable"
        ) from error

    def watch() -> None:
        select.select([descriptor], [], [])
        os._exit(137)  # children hang on the lifeline, which breaks now

    threading.Thread(target=watch, name="pipeline", daemon=True).start()
