"""Processes that are watched where they are: those of a cgroup that was there before, or some of a shared one."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from cgroup import get_owners, list_trees, recover
from followed import Group, Process, read_stat

_OPEN = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_TICK_US = 1_000_000 // os.sysconf("SC_CLK_TCK")

Announce = Callable[[Sequence[Group]], None]


class HeldCgroup:
    """A cgroup and those below it; nothing in it is changed. What it is called may change: a descriptor holds it.

    PermissionError when a process in it is not `uid`'s (None: anybody's will do), or there is none.
    """

    def __init__(self, hierarchy: Path, path: str, uid: int | None, announce: Announce) -> None:
        self._path, self._uid = path, uid
        self._held = _open_beneath(hierarchy, path)
        try:
            if uid is not None and self._list_owners() != {uid}:
                raise PermissionError(f"cgroup {path}: expected processes of user {uid} only")
            announce(self.directories)
        except BaseException:
            self.release()
            raise

    @property
    def directories(self) -> list[Path]:
        """The cgroup; what is made below it belongs to it."""
        return [Path(f"/proc/self/fd/{self._held}")]

    def read_cpu_us(self) -> int:
        """Return the CPU time of everything that ever ran in it, in microseconds."""
        lines = (self.directories[0] / "cpu.stat").read_text().splitlines()
        return sum(int(line.split()[1]) for line in lines if line.startswith("usage_usec "))

    def check_owners(self) -> None:
        """Raise PermissionError when a process of another user has come in since."""
        if self._uid is not None and self._list_owners() - {self._uid}:
            raise PermissionError(
                f"cgroup {self._path}: a process of another user came in while it was watched; expected processes of "
                f"user {self._uid} only"
            )

    def release(self) -> None:
        """Let go of it."""
        os.close(self._held)

    def _list_owners(self) -> set[int]:
        owners: set[int] = set()
        for pid in self._list_processes():
            with contextlib.suppress(ProcessLookupError):  # ended while we looked
                owners |= get_owners(pid)
        return owners

    def _list_processes(self) -> Iterator[int]:
        for _, _, _, directory in os.fwalk(".", dir_fd=self._held):
            inner = os.open("cgroup.procs", os.O_RDONLY | os.O_CLOEXEC, dir_fd=directory)
            with os.fdopen(inner) as file:
                yield from map(int, file.read().split())


class HeldProcesses:
    """Processes with all their descendants, in whatever cgroups they are; nothing is moved.

    PermissionError when a named process is not `uid`'s (None: anybody's will do), ProcessLookupError when it is gone.
    """

    def __init__(self, hierarchy: Path, pids: Sequence[int], uid: int | None, announce: Announce) -> None:
        self._uid, trees = uid, list_trees(pids)
        self._roots = [Process(pid, trees[pid]) for pid in pids]
        for root in self._roots:
            if uid is not None and get_owners(root.pid) != {uid}:
                raise PermissionError(f"process {root.pid} does not belong to user {uid}")
            recover(hierarchy, root.pid)
            if not root.is_there():
                raise ProcessLookupError(f"there is no process {root.pid}")
        announce(())  # nobody who was followed before
        announce(self.directories)
        announce(self.directories)  # those that were born meanwhile

    @property
    def directories(self) -> list[Process]:
        """The processes themselves: those that were named and have not ended, with their descendants."""
        return sorted(process for process in self._list_trees() if self._is_allowed(process.pid))

    def read_cpu_us(self) -> int:
        """Return the CPU time of those that live and of their children that ended, in microseconds."""
        return sum(_read_cpu_us(process.pid) for process in self._list_trees())

    def release(self) -> None:
        """Let go of them."""

    def _list_trees(self) -> list[Process]:
        while True:
            roots = [root for root in self._roots if root.is_there()]
            trees = list_trees(root.pid for root in roots)
            if all(root.is_there() for root in roots):
                return [Process(*process) for process in trees.items()]

    def _is_allowed(self, pid: int) -> bool:
        try:
            return self._uid is None or get_owners(pid) == {self._uid}
        except ProcessLookupError:
            return False


def _open_beneath(hierarchy: Path, path: str) -> int:
    """Open a cgroup, given as /proc/PID/cgroup shows it, step by step: no link and no .. leads out of the hierarchy."""
    parts = path.split("/")[1:] if path != "/" else []
    if not path.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise PermissionError(f"cgroup: expected a path like /system.slice/x.service, found {path[:100]!r}")
    descriptor = os.open(hierarchy, _OPEN)
    for part in parts:
        try:
            inner = os.open(part, _OPEN, dir_fd=descriptor)
        except OSError as problem:
            raise FileNotFoundError(f"there is no cgroup {path[:200]} ({problem.strerror})") from problem
        finally:
            os.close(descriptor)
        descriptor = inner
    return descriptor


def _read_cpu_us(pid: int) -> int:
    with contextlib.suppress(FileNotFoundError, ProcessLookupError):
        return sum(map(int, read_stat(pid)[11:15])) * _TICK_US  # utime, stime, cutime, cstime
    return 0
