"""Keeps one command and everything it ever forks: when the lifeline breaks or the command ends, all of it ends.

Run as a program by `supervise`; standard library only, so that it starts in some milliseconds. Two processes do it, so
that a kill -9 of either still ends the tree: the outer one, which the caller knows, passes signals on; the inner one
starts the command and watches the lifeline. Both are sub-reapers (double forks cannot escape them) in a session of
their own (a kill of the caller's process group does not reach them). SIGUSR1 means: end everything now. With an end
signal all processes get it first, and a moment to return what only they can return (shared memory outlives a killed
server).

With `--user` the command runs as that user, in an environment without what is root's alone; with `--network` in a
network namespace, so that nobody else reaches its ports; with `--reach` it gets to directories below some that the
user may not enter (view.py).
"""

import argparse
import ctypes
import os
import pwd
import select
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

__all__ = ["main"]

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNET = 0x40000000
#: After the end signal, until everything is killed.
_PATIENCE_S = 3.0
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_KILLED = 137
#: What another user's commands keep of root's environment: the rest may hold secrets, or name root's own directories.
_KEPT_VARIABLES = ("PATH", "LANG", "LANGUAGE", "TZ", "TERM", "JAVA_HOME")
_KEPT_PREFIXES = ("LC_", "LD_", "MALLOC_", "KNOBSCOPE_")
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Run the command after ``--`` and return its exit code (128 + signal when it was killed)."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lifeline", type=int, required=True, help="descriptor that reads EOF when the caller is gone")
    parser.add_argument("--end-signal", help="signal that the processes get before everything is killed")
    parser.add_argument("--user", help="user that the command runs as; needs root")
    parser.add_argument("--set", action="append", default=[], metavar="NAME", help="variable that this user gets too")
    parser.add_argument("--network", type=int, help="descriptor of the network namespace; needs root")
    parser.add_argument("--reach", action="append", default=[], help="path that the user has to get at (repeatable)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    end_signal = getattr(signal, f"SIG{options.end_signal}") if options.end_signal else None
    if os.getsid(0) != os.getpid():  # a command that sshd started has a session of its own already
        os.setsid()
    _set(_PR_SET_CHILD_SUBREAPER, 1)
    outer = os.getpid()
    inner = os.fork()
    if inner:
        return _stand_by(inner, end_signal)
    _set(_PR_SET_CHILD_SUBREAPER, 1)  # forked processes do not inherit it
    return _keep(options, end_signal, outer)


def _set(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _stand_by(inner: int, end_signal: signal.Signals | None) -> int:
    """Pass signals on to the inner process and return its exit code; end what it leaves when it is killed."""
    for number in (*_FORWARDED, signal.SIGUSR1):
        signal.signal(number, lambda received, _: os.kill(inner, received))
    while True:
        pid, status = os.waitpid(-1, 0)
        if pid == inner:
            break
    for number in (*_FORWARDED, signal.SIGUSR1):
        signal.signal(number, signal.SIG_IGN)
    if os.WIFEXITED(status):
        return os.WEXITSTATUS(status)
    _end_all(end_signal)
    return _KILLED


def _keep(options: argparse.Namespace, end_signal: signal.Signals | None, outer: int) -> int:
    """Start the command; return its exit code once it has ended, and all that it left with it."""
    command, lifeline = options.command[1:], options.lifeline
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # seen through the wake-up pipe
    try:
        described = _describe_child(options, end_signal)
        _set(_PR_SET_PDEATHSIG, signal.SIGUSR1)  # not before: who acts as another user for a while loses it
        if os.getppid() != outer:
            return _KILLED
        child = subprocess.Popen(command, **described)
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
    _end_all(end_signal if code is None else None)
    return _KILLED if code is None else code


def _describe_child(options: argparse.Namespace, end_signal: signal.Signals | None) -> dict[str, Any]:
    """Enter the namespaces that the command lives in; return the arguments of Popen."""
    if options.network is not None and _libc.setns(options.network, _CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), "cannot enter the network namespace")
    death_signal = end_signal or signal.SIGKILL
    if options.user is None:
        return {"preexec_fn": lambda: _libc.prctl(_PR_SET_PDEATHSIG, death_signal)}
    account = pwd.getpwnam(options.user)
    sys.path.append(str(Path(__file__).parent))  # -I leaves it out
    from view import open_view

    open_view(account, [Path(path) for path in options.reach])

    def give_up_privileges() -> None:
        _set(_PR_SET_PDEATHSIG, death_signal)
        _set(_PR_SET_NO_NEW_PRIVS, 1)

    return {
        "preexec_fn": give_up_privileges,
        "user": account.pw_uid,
        "group": account.pw_gid,
        "extra_groups": [],
        "env": _environment_of(account, options.set),
    }


def _environment_of(account: pwd.struct_passwd, wanted: list[str]) -> dict[str, str]:
    kept = {
        name: text
        for name, text in os.environ.items()
        if name in (*_KEPT_VARIABLES, *wanted) or name.startswith(_KEPT_PREFIXES)
    }
    return {"HOME": "/nonexistent", "USER": account.pw_name, "LOGNAME": account.pw_name, **kept}


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


def _end_all(end_signal: signal.Signals | None) -> None:
    """End all descendants: by the end signal and, what does not heed it in time, by SIGKILL."""
    if end_signal is not None:
        _send(end_signal)
        deadline = time.monotonic() + _PATIENCE_S
        while _has_children() and time.monotonic() < deadline:
            time.sleep(0.005)
    while _has_children():  # new forks appear as further children of ours
        _send(signal.SIGKILL)
        time.sleep(0.001)


def _has_children() -> bool:
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        return False
    return True


def _send(number: signal.Signals) -> None:
    """Send a signal to the whole tree, parents first."""
    for pid in _descendants(os.getpid()):
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            continue


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
