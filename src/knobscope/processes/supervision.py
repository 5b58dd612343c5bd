"""Starts processes that cannot outlive us, however we end."""

import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import IO, Any

from knobscope.errors import UserError

__all__ = ["PIPELINE_VARIABLE", "capture", "follow_pipeline", "supervise"]

#: The pipeline's process number, set by the Snakefile for its jobs.
PIPELINE_VARIABLE = "KNOBSCOPE_PIPELINE_PID"

_KEEPER = Path(__file__).with_name("keeper.py")


@cache
def _lifeline() -> tuple[int, int]:
    """A pipe that nobody writes to: its write end closes when this process is gone."""
    return os.pipe()


def supervise(
    command: list[str],
    *,
    user: str | None = None,
    network: int | None = None,
    reach: Iterable[Path] = (),
    end_signal: str | None = None,
    stdin: int = subprocess.DEVNULL,
    stdout: IO[Any] | int | None = None,
    stderr: IO[Any] | int | None = None,
    cwd: str | Path | None = None,
    env: dict[str, str] | None = None,
) -> "subprocess.Popen[bytes]":
    """Start a command under a keeper; the command and all its descendants end when this process does.

    The keeper's pid is what the returned object knows; signals TERM, INT, QUIT and HUP sent to it go to the command,
    its exit code is the command's (128 + signal when killed, 127 when it cannot be run); USR1 ends everything. With
    `user` (root only) the command runs as that user, who gets at the paths in `reach` whatever directories they lie
    in, and of our environment only what is no secret, with what `env` adds to it; with `network` in that network
    namespace; with `end_signal` (a name without SIG) it gets that signal before it is killed.
    """
    read_end, _ = _lifeline()
    options = ["--end-signal", end_signal] if end_signal else []
    if user is not None:
        added = [name for name, text in (env or {}).items() if os.environ.get(name) != text]
        options += ["--user", user, *(f"--set={name}" for name in added), *(f"--reach={path}" for path in reach)]
    if network is not None:
        options += ["--network", str(network)]
    keeper = [sys.executable, "-I", "-S", str(_KEEPER), "--lifeline", str(read_end), *options, "--", *command]
    return subprocess.Popen(
        keeper,
        stdin=stdin,
        stdout=stdout,
        stderr=stderr,
        cwd=cwd,
        env=env,
        pass_fds=(read_end,) if network is None else (read_end, network),
    )


def capture(process: "subprocess.Popen[bytes]", timeout_s: float) -> tuple[int, str, str]:
    """Wait for a supervised command with pipes; return exit code, output and errors.

    Raises subprocess.TimeoutExpired when it takes too long; it is ended then, with all it started.
    """
    try:
        output, errors = process.communicate(timeout=timeout_s)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGUSR1)
        process.communicate()
        raise
    said, complained = ((text or b"").decode(errors="replace") for text in (output, errors))
    return process.returncode, said, complained


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
