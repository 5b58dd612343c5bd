"""Keeps one command and everything it ever forks: when the lifeline breaks or the command ends, all of it ends.

Run as a program by `supervise`; standard library only, so that it starts in some milliseconds. It is the sub-reaper
of its descendants (double forks cannot escape it), leads a session of its own (a kill of the caller's process group
does not reach it), and the command dies with it, should somebody kill the keeper itself. SIGUSR1 means: end
everything now. With an end signal the command gets it first, and a moment to return what only it can return (shared
memory outlives a killed server).
"""

import argparse
import ctypes
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
#: After the end signal, until everything is killed.
_PATIENCE_S = 3.0
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)


def main() -> int:
    """Run the command after ``--`` and return its exit code (128 + signal when it was killed)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lifeline", type=int, required=True, help="descriptor that reads EOF when the caller is gone")
    parser.add_argument("--end-signal", help="signal that the command gets before everything is killed")
    parser.add_argument("--user", help="user that the command runs as; needs root")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    os.setsid()
    prctl = ctypes.CDLL(None, use_errno=True).prctl
    if prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "cannot become a sub-reaper")
    return _keep(options, lambda: prctl(_PR_SET_PDEATHSIG, signal.SIGKILL))


def _keep(options: argparse.Namespace, bind_to_keeper: Callable[[], object]) -> int:
    command, user, lifeline = options.command[1:], options.user, options.lifeline
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # seen through the wake-up pipe
    owner = {"user": user, "group": user, "extra_groups": []} if user else {}
    try:
        child = subprocess.Popen(command, preexec_fn=bind_to_keeper, **owner)  # noqa: PLW1509
    except OSError as error:
        print(f"cannot run {command[0]}: {error}", file=sys.stderr)
        return 127
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: os.kill(child.pid, received))
    code = None
    while code is None:
        ready, _, _ = select.select([lifeline, wake_read], [], [])
        if lifeline in ready:
            break
        if signal.SIGUSR1 in os.read(wake_read, 512):
            break
        code = _reap(child.pid)
    if code is None and options.end_signal is not None:
        _end_gently(child.pid, getattr(signal, f"SIG{options.end_signal}"))
    _kill_descendants()
    return 137 if code is None else code


def _reap(command_pid: int) -> int | None:
    """Collect ended children, adopted ones too; return the command's exit code once it has one."""
    code = None
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return code
        if pid == 0:
            return code
        if pid == command_pid:
            ended = os.waitstatus_to_exitcode(status)
            code = 128 - ended if ended < 0 else ended


def _end_gently(command_pid: int, number: int) -> None:
    os.kill(command_pid, number)
    deadline = time.monotonic() + _PATIENCE_S
    while _reap(command_pid) is None and time.monotonic() < deadline:
        time.sleep(0.005)


def _kill_descendants() -> None:
    """SIGKILL the whole tree until nothing is left; new forks appear as further children of ours."""
    while True:
        for pid in _descendants(os.getpid()):
            try:
                os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue
        try:
            os.waitpid(-1, 0)
        except ChildProcessError:
            return


def _descendants(root: int) -> list[int]:
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found, queue = [], [root]
    while queue:
        for pid in children.get(queue.pop(), []):
            found.append(pid)
            queue.append(pid)
    return found


if __name__ == "__main__":
    sys.exit(main())
