"""Keeps one command and everything it ever forks: when the lifeline breaks or the command ends, all of it ends.

Run as a program by `supervise`; standard library only, so that it starts in some milliseconds. Two processes do it, so
that a kill -9 of either still ends the tree: the outer one, which the caller knows, passes signals on; the inner one
starts the command and watches the lifeline. Both are sub-reapers (double forks cannot escape them) in a session of
their own (a kill of the caller's process group does not reach them). SIGUSR1 means: end everything now. With an end
signal all processes get it first, and a moment to return what only they can return (shared memory outlives a killed
server).

With `--user` the command runs as that user, in an environment without what is root's alone; with `--network` in a
network namespace, so that nobody else reaches its ports; with `--sandbox` in the namespaces of its run (first.py); with
`--reach` it gets to directories below some that the user may not enter, or that are covered (view.py). In a sandbox the
inner process and all that it starts live in the run's PID namespace, where orphans of a killed inner process go to the
first process there; the outer one lives outside and asks that one to end them.
"""

import argparse
import contextlib
import ctypes
import os
import pwd
import select
import signal
import stat
import sys
import time
from pathlib import Path
from typing import Any

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNS, _CLONE_NEWIPC, _CLONE_NEWNET = 0x00020000, 0x08000000, 0x40000000
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
#: After the end signal, until everything is killed.
_PATIENCE_S = 3.0
_FORWARDED = (signal.SIGTERM, signal.SIGINT, signal.SIGQUIT, signal.SIGHUP)
_KILLED = 137
#: Longest log that a command may write, and how often that is looked at. A run that logs every statement writes some
#: hundred MB.
_LOG_BYTES = 1 << 30
_LOOK_S = 0.5
#: Before the names of variables that are for the command alone, in the environment of its keeper.
SET_PREFIX = "KNOBSCOPE_SET_"
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
    parser.add_argument("--set", action="append", default=[], metavar="NAME", help="variable of the command")
    parser.add_argument("--network", type=int, help="descriptor of the network namespace; needs root")
    parser.add_argument("--sandbox", type=int, help="descriptor of the first process of the run's namespaces")
    parser.add_argument("--cover", action="append", default=[], help="DIRECTORY=WITH: what covers it (repeatable)")
    parser.add_argument("--reach", action="append", default=[], help="path that the user has to get at (repeatable)")
    parser.add_argument("command", nargs=argparse.REMAINDER)
    options = parser.parse_args()
    end_signal = getattr(signal, f"SIG{options.end_signal}") if options.end_signal else None
    if os.getsid(0) != os.getpid():  # a command that sshd started has a session of its own already
        os.setsid()
    _set(_PR_SET_CHILD_SUBREAPER, 1)
    if options.sandbox is not None:
        _enter(options.sandbox, _CLONE_NEWPID if os.geteuid() == 0 else _CLONE_NEWPID | _CLONE_NEWUSER)
    outer_lives, write_end = os.pipe()
    inner = os.fork()
    if inner:
        os.close(outer_lives)
        return _stand_by(inner, end_signal, options.sandbox)
    os.close(write_end)
    _set(_PR_SET_CHILD_SUBREAPER, 1)  # forked processes do not inherit it
    return _keep(options, end_signal, outer_lives)


def _set(option: int, value: int) -> None:
    if _libc.prctl(option, value, 0, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), f"prctl {option}")


def _enter(namespaces: int, kinds: int) -> None:
    if _libc.setns(namespaces, kinds) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the namespaces of the run: {os.strerror(number)}")


def may_make_user_namespaces() -> bool:
    """Whether the kernel knows user namespaces, and the machine has not closed them to everybody."""
    limit = Path("/proc/sys/user/max_user_namespaces")
    return limit.exists() and limit.read_bytes().strip() != b"0"  # Python may be out of sight here, codecs with it


def _stand_by(inner: int, end_signal: signal.Signals | None, sandbox: int | None) -> int:
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
    if sandbox is not None:
        with contextlib.suppress(ProcessLookupError):  # gone, and all with it
            signal.pidfd_send_signal(sandbox, signal.SIGUSR1)
    end_all(end_signal)
    return _KILLED


def _name_interpreter(program: str) -> str:
    """Return the interpreter of a script, which may be what is missing or what this user may not run."""
    head = b""
    with contextlib.suppress(OSError), Path(program).open("rb") as file:
        head = file.readline(200)
    return f", a script for {head[2:].decode(errors='replace').strip()}" if head.startswith(b"#!") else ""


def _keep(options: argparse.Namespace, end_signal: signal.Signals | None, outer_lives: int) -> int:
    """Start the command; return its exit code once it has ended, and all that it left with it."""
    import subprocess  # the first process of a run does without it

    command, lifeline = options.command[1:], options.lifeline
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # seen through the wake-up pipe
    try:
        described = _prepare_child(options, end_signal)
        child = subprocess.Popen(command, **described)
    except OSError as error:
        print(f"cannot run {command[0]}{_name_interpreter(command[0])}: {error}", file=sys.stderr)
        return 127
    for number in _FORWARDED:
        signal.signal(number, lambda received, _: os.kill(child.pid, received))
    code, logs = None, _find_logs()
    while code is None:
        ready, _, _ = select.select([lifeline, outer_lives, wake_read], [], [], _LOOK_S if logs else None)
        if not ready and any(os.fstat(log).st_size > _LOG_BYTES for log in logs):
            os.write(logs[-1], b"\nended, since it wrote a log of more than %d MiB\n" % (_LOG_BYTES >> 20))
            end_all(end_signal)
            return 128 + signal.SIGXFSZ
        if not ready:
            continue
        if lifeline in ready or outer_lives in ready:
            break
        if signal.SIGUSR1 in os.read(wake_read, 512):
            break
        code = reap(child.pid)
    end_all(end_signal if code is None else None)
    return _KILLED if code is None else code


def _find_logs() -> list[int]:
    """Return standard output and error where they are files."""
    return [stream for stream in (1, 2) if stat.S_ISREG(os.fstat(stream).st_mode)]


def _prepare_child(options: argparse.Namespace, end_signal: signal.Signals | None) -> dict[str, Any]:
    """Enter the namespaces that the command lives in; return the arguments of Popen."""
    is_root, before = os.geteuid() == 0, Path.cwd()
    if options.sandbox is not None:
        _enter(options.sandbox, _CLONE_NEWIPC | _CLONE_NEWNS)
    if options.network is not None:
        _enter(options.network, _CLONE_NEWNET)
    account = pwd.getpwnam(options.user) if options.user is not None else None
    if account is not None or options.cover:
        sys.path.append(str(Path(__file__).parent))  # -I leaves it out
        from view import open_view

        covers = {Path(where): Path(by) for where, by in (cover.split("=", 1) for cover in options.cover)}
        open_view(account, [Path(path) for path in options.reach], covers)
    os.chdir(before if before.exists() else "/")
    if (
        options.sandbox is not None and is_root and may_make_user_namespaces()
    ):  # last: it has no rights over what was made outside
        _enter(options.sandbox, _CLONE_NEWUSER)
    death_signal = end_signal or signal.SIGKILL
    for name in options.set:  # from here on they may be what they are
        os.environ[name] = os.environ.pop(f"{SET_PREFIX}{name}")

    def prepare() -> None:
        _set(_PR_SET_PDEATHSIG, death_signal)
        if account is not None or options.sandbox is not None:
            _set(_PR_SET_NO_NEW_PRIVS, 1)

    if account is None:
        return {"preexec_fn": prepare}
    return {
        "preexec_fn": prepare,
        "user": account.pw_uid,
        "group": account.pw_gid,
        "extra_groups": [],
        "env": _environment_of(account, options.set),
    }


def _environment_of(account: pwd.struct_passwd, wanted: list[str]) -> dict[str, str]:
    variables = {
        name: text
        for name, text in os.environ.items()
        if name in (*_KEPT_VARIABLES, *wanted) or name.startswith(_KEPT_PREFIXES)
    }
    return {"HOME": "/nonexistent", "USER": account.pw_name, "LOGNAME": account.pw_name, **variables}


def reap(command_pid: int | None) -> int | None:
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


def end_all(end_signal: signal.Signals | None) -> None:
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
                fields = (entry / "stat").read_text(errors="replace").rsplit(")", 1)[1].split()
            except (FileNotFoundError, ProcessLookupError):
                continue
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    descendants, queue = [], [root]
    while queue:
        for pid in children.get(queue.pop(), []):
            descendants.append(pid)
            queue.append(pid)
    return descendants


if __name__ == "__main__":
    sys.exit(main())
