"""The first process of a run's namespaces: they are there as long as it lives, and all processes in them end with it.

Run as a program by `open_sandbox`; standard library only, so that it starts in some milliseconds. It writes its process
number on a line once all is made: a PID namespace with its own /proc, an IPC namespace (System V segments and message
queues go with it), a /dev/shm in memory, and a user namespace in which no further one can be made. Keepers enter them
with each command of the run. Everything is gone when the lifeline breaks, also after kill -9: the kernel kills a
PID namespace whose first process is gone.

Started by root, all users keep their numbers in the user namespace; started by somebody else, it knows only that one.
"""

import argparse
import contextlib
import ctypes
import os
import select
import signal
import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))  # -I leaves it out
from keeper import end_all, may_make_user_namespaces, reap
from view import cover, leave_devices, mount

_CLONE_NEWNS, _CLONE_NEWIPC = 0x00020000, 0x08000000
_CLONE_NEWUSER, _CLONE_NEWPID = 0x10000000, 0x20000000
_MS_NOSUID, _MS_NODEV, _MS_NOEXEC, _MS_REC, _MS_SLAVE = 2, 4, 8, 16384, 1 << 19
_SHARED = Path("/dev/shm")  # noqa: S108 - in here it is ours
_libc = ctypes.CDLL(None, use_errno=True)


def main() -> int:
    """Make the namespaces and stay until the lifeline breaks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--lifeline", type=int, required=True, help="descriptor that reads EOF when the caller is gone")
    parser.add_argument("--reach", action="append", default=[], help="path that the run needs (repeatable)")
    options = parser.parse_args()
    os.setsid()
    is_root, maps = os.geteuid() == 0, _make_maps()
    _unshare(_CLONE_NEWPID if is_root else _CLONE_NEWPID | _CLONE_NEWUSER)
    if not is_root:
        _write_maps("self", maps)
    told_read, told_write = os.pipe()
    mapped_read, mapped_write = os.pipe()
    first = os.fork()
    if first == 0:
        os.close(told_read)
        os.close(mapped_write)
        _make_namespaces([Path(path) for path in options.reach], told_write, mapped_read, is_root=is_root)
        return _stay(options.lifeline)
    os.close(told_write)
    if is_root and os.read(told_read, 1):
        if may_make_user_namespaces():
            _write_maps(str(first), maps)
        os.write(mapped_write, b"m")
    if os.read(told_read, 1):
        print(first, flush=True)
    return os.waitstatus_to_exitcode(os.waitpid(first, 0)[1])


def _make_namespaces(reach: list[Path], status_pipe: int, mapped: int, *, is_root: bool) -> None:
    """Make all but the PID namespace, as its first process; the last byte to `status_pipe` says that they are made."""
    _unshare(_CLONE_NEWNS | _CLONE_NEWIPC)
    mount("none", "/", "", _MS_REC | _MS_SLAVE)  # what is mounted from now on stays in here
    if is_root:  # nobody else may take a mount out of a namespace
        leave_devices([path.resolve() for path in reach])
    mount("proc", "/proc", "proc", _MS_NOSUID | _MS_NODEV | _MS_NOEXEC)
    _begin_anywhere()
    cover(_SHARED, None, (path for path in reach if _SHARED in path.parents), "mode=1777")
    is_open = may_make_user_namespaces()
    if is_root:
        if is_open:
            _unshare(_CLONE_NEWUSER)
        os.write(status_pipe, b"u")
        os.read(mapped, 1)
    if is_open:
        Path("/proc/sys/user/max_user_namespaces").write_text("0", encoding="ascii")
    os.chdir("/")
    os.write(status_pipe, b"d")


def _begin_anywhere() -> None:
    """Let process numbers begin at random, as on a machine that has run for long.

    A server that was killed leaves a file with its number. In another namespace, where numbers begin with 1 again, a
    process of the next server would have it, and PostgreSQL would refuse to start.
    """
    with contextlib.suppress(OSError):  # a kernel without CONFIG_CHECKPOINT_RESTORE
        number = 300 + int.from_bytes(os.urandom(2)) % 30000
        Path("/proc/sys/kernel/ns_last_pid").write_text(str(number), encoding="ascii")


def _make_maps() -> tuple[str, str]:
    """Return the maps of users and groups: all that are known here for root, for anybody else just that one."""
    if os.geteuid() != 0:
        return f"{os.geteuid()} {os.geteuid()} 1\n", f"{os.getegid()} {os.getegid()} 1\n"
    maps = (Path(f"/proc/self/{kind}_map").read_text(encoding="ascii").splitlines() for kind in ("uid", "gid"))
    users, groups = ("".join("{0} {0} {2}\n".format(*line.split()) for line in lines) for lines in maps)
    return users, groups


def _write_maps(process: str, maps: tuple[str, str]) -> None:
    if os.geteuid() != 0:
        Path(f"/proc/{process}/setgroups").write_text("deny", encoding="ascii")
    for kind, text in zip(("uid", "gid"), maps, strict=True):
        Path(f"/proc/{process}/{kind}_map").write_text(text, encoding="ascii")


def _unshare(flags: int) -> None:
    if _libc.unshare(flags) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot make namespaces: {os.strerror(number)}")


def _stay(lifeline: int) -> int:
    """Stay until the lifeline breaks, collect orphans, and end them at SIGUSR1: theirs is a keeper that was killed."""
    wake_read, wake_write = os.pipe()
    os.set_blocking(wake_write, False)
    signal.set_wakeup_fd(wake_write, warn_on_full_buffer=False)
    for number in (signal.SIGCHLD, signal.SIGUSR1):
        signal.signal(number, lambda *_: None)  # seen through the wake-up pipe
    while True:
        ready, _, _ = select.select([lifeline, wake_read], [], [])
        if lifeline in ready:
            return 0
        if signal.SIGUSR1 in os.read(wake_read, 512):
            end_all(None)
        reap(None)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except OSError as error:
        sys.exit(str(error))
