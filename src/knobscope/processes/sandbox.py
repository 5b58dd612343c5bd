"""Namespaces of a run: its processes see and signal no others, and leave no shared memory and no temporary files."""

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from knobscope.errors import UserError
from knobscope.processes.holding import open_temporary
from knobscope.processes.supervision import Sandbox, lifeline

_FIRST = Path(__file__).with_name("first.py")
#: Directories that everybody may write to: a run gets others instead, on the same file systems.
_COVERED = (Path("/tmp"), Path("/var/tmp"))  # noqa: S108 - they are covered
_PREFIX = "knobscope-private-"


class SandboxUnavailableError(UserError):
    """No namespaces can be made here."""


@contextmanager
def open_sandbox(reach: Iterable[Path] = ()) -> Iterator[Sandbox | None]:
    """Yield the namespaces of a run, None where none can be made; at the end all that runs in them is killed.

    `reach`: paths that the run needs; emulated devices that have none of them are not mounted in there.
    """
    with ExitStack() as stack:
        try:
            sandbox = stack.enter_context(make_sandbox(reach))
        except SandboxUnavailableError:
            yield None
        else:
            yield sandbox


@contextmanager
def make_sandbox(reach: Iterable[Path] = ()) -> Iterator[Sandbox]:
    """Yield the namespaces of a run. Raises SandboxUnavailableError with the reason where none can be made."""
    with ExitStack() as stack:
        covers = {cover: _make_private(stack, cover) for cover in _COVERED if not cover.is_symlink()}
        command = [sys.executable, "-I", "-S", str(_FIRST), "--lifeline", str(lifeline())]
        process = subprocess.Popen(
            [*command, *(f"--reach={path}" for path in reach)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=(lifeline(),),
            cwd="/",
        )
        stack.enter_context(process)
        assert process.stdout is not None  # noqa: S101
        assert process.stderr is not None  # noqa: S101
        number = process.stdout.readline()
        if not number:
            raise SandboxUnavailableError(process.stderr.read().decode(errors="replace").strip())
        first = os.pidfd_open(int(number))
        stack.callback(os.close, first)
        stack.callback(_end, first)
        yield Sandbox(first, covers)


def _end(first: int) -> None:
    with contextlib.suppress(ProcessLookupError):  # somebody else has ended it
        signal.pidfd_send_signal(first, signal.SIGKILL)


def _make_private(stack: ExitStack, cover: Path) -> Path:
    """Make what covers a directory in a run, on the same file system; nobody else passes the one around it."""
    private = stack.enter_context(open_temporary(_PREFIX, cover)) / "t"
    private.mkdir()
    private.chmod(0o1777)
    return private
