"""Cgroup v2 directories of a run: the process set that counts as the workload. Children follow by themselves."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import count, takewhile
from pathlib import Path

from followed import MAX_GROUPS, Group, read_stat
from kernel import UnavailableError

_PREFIX = "knobscope-"
_OWN = re.compile(r"knobscope-\d+-[0-9a-f]+-\d+")
_NUMBERS = count(1)
_WARDEN = Path(__file__).resolve().with_name("warden.py")


def find_hierarchy() -> Path:
    """Return where cgroup v2 is mounted (alone or together with v1); UnavailableError when nowhere, or read-only."""
    for line in Path("/proc/self/mountinfo").read_text(errors="surrogateescape").splitlines():
        fields, _, filesystem = line.partition(" - ")
        if filesystem.split()[0] == "cgroup2":
            mount = Path(fields.split()[4])
            if not os.access(mount, os.W_OK):
                raise UnavailableError(f"cgroup v2 at {mount} is read-only")
            return mount
    raise UnavailableError("no cgroup v2 hierarchy is mounted")


class RunCgroup:
    """A directory below each cgroup that a followed process comes from: its limits go on holding, and it can go back.

    `announce` is called with all directories when there is one more, before a process is moved into it. With
    `is_guarded` a warden gives the processes back when this one is killed with -9.
    """

    def __init__(
        self, hierarchy: Path, announce: Callable[[Sequence[Group]], None], *, is_guarded: bool = False
    ) -> None:
        self._hierarchy, self._announce, self._is_guarded = hierarchy, announce, is_guarded
        self._held: dict[Path, tuple[Path, int]] = {}  # where processes come from -> directory, its lock

    @property
    def directories(self) -> list[Path]:
        """The cgroups themselves; what is made below them belongs to the run too."""
        return [directory for directory, _ in self._held.values()]

    def read_cpu_us(self) -> int:
        """Return the CPU time of everything that ever ran in them, in microseconds."""
        lines = (line for group in self.directories for line in (group / "cpu.stat").read_text().splitlines())
        return sum(int(line.split()[1]) for line in lines if line.startswith("usage_usec "))

    def add_trees(self, pids: Iterable[int], uid: int | None) -> tuple[list[int], list[int]]:
        """Move processes and their present descendants in; return those moved and descendants that are not `uid`'s.

        PermissionError when a named process is not `uid`'s (None: anybody's will do), ProcessLookupError when it is
        gone.
        """
        pids = list(pids)
        inside: set[int] = set()
        refused: set[int] = set()
        for pid in pids:
            if uid is not None and get_owners(pid) != {uid}:
                raise PermissionError(f"process {pid} does not belong to user {uid}")
        while waiting := list_trees(pids).keys() - inside - refused - {os.getpid()}:  # until a look finds no new forks
            for pid in waiting:
                try:
                    is_allowed = self._add(pid, uid)
                except ProcessLookupError:
                    if pid in pids:
                        raise
                    is_allowed = False
                (inside if is_allowed else refused).add(pid)
        return sorted(inside), sorted(pid for pid in refused if Path("/proc", str(pid)).exists())

    def _add(self, pid: int, uid: int | None) -> bool:
        """Move a process in; whether it is `uid`'s. ProcessLookupError: it is gone."""
        try:
            handle = os.pidfd_open(pid)
        except ProcessLookupError as gone:
            raise ProcessLookupError(f"there is no process {pid}") from gone
        try:
            if uid is not None and get_owners(pid) != {uid}:
                return False
            parent = _find_parent(self._hierarchy, pid, uid)
            (self._open(parent) / "cgroup.procs").write_text(str(pid))
            try:
                signal.pidfd_send_signal(handle, 0)
            except ProcessLookupError:  # so another process may have its number by now, and have been moved
                if uid is not None:
                    with contextlib.suppress(ProcessLookupError):
                        target = parent if uid in get_owners(pid) else self._hierarchy
                        (target / "cgroup.procs").write_text(str(pid))
                raise
            return True
        finally:
            os.close(handle)

    def release(self) -> None:
        """Move what is left, also below them, back to where it came from and remove the directories."""
        for parent, (directory, lock) in list(self._held.items()):
            give_back(directory, parent)
            os.close(lock)
            del self._held[parent]

    def _open(self, parent: Path) -> Path:
        if parent not in self._held:
            if len(self._held) == MAX_GROUPS:
                raise PermissionError(f"the processes come from more than {MAX_GROUPS} cgroups")
            _remove_orphans(parent)
            self._held[parent] = _make_held(parent)
            if self._is_guarded:
                _start_warden(self._held[parent][0], parent)
            self._announce(self.directories)
        return self._held[parent][0]


def _make_held(parent: Path) -> tuple[Path, int]:
    """Make a directory; while the descriptor is open, nobody takes it for an orphan."""
    while True:
        directory = parent / f"{_PREFIX}{os.getpid()}-{time.monotonic_ns():x}-{next(_NUMBERS)}"
        directory.mkdir(mode=0o700)  # anyone who can open a directory can lock it, and it then stays for ever
        with contextlib.suppress(FileNotFoundError):  # taken for one before we held it
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if directory.exists():
                _stop_pressure(directory)
                return directory, lock
            os.close(lock)


def _stop_pressure(directory: Path) -> None:
    """Keep no account of stalls for this level: the kernel would add to it at each switch of a followed thread."""
    with contextlib.suppress(FileNotFoundError):  # before 6.1, or no account is kept at all (psi=0)
        descriptor = os.open(directory / "cgroup.pressure", os.O_WRONLY)  # creating one is forbidden
        try:
            os.write(descriptor, b"0")
        finally:
            os.close(descriptor)


def _start_warden(directory: Path, parent: Path) -> None:
    """Start warden.py, in a session of its own: what ends ours does not end it."""
    command = [sys.executable, "-I", str(_WARDEN), str(directory), str(parent)]
    subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, start_new_session=True)


def recover(hierarchy: Path, pid: int) -> None:
    """Take a process out of the cgroup of a monitor that was killed with -9, if it is in one."""
    _remove_orphans(_find_parent(hierarchy, pid, None))


def _find_parent(hierarchy: Path, pid: int, uid: int | None) -> Path:
    """Return the cgroup of a process, or that above one of ours.

    PermissionError: it is not there, and a process of `uid` must not leave the limits that hold for it.
    """
    try:
        lines = Path("/proc", str(pid), "cgroup").read_text(errors="surrogateescape").split("\n")
    except FileNotFoundError as gone:
        raise ProcessLookupError(f"there is no process {pid}") from gone
    path = next(line[3:] for line in lines if line.startswith("0::"))
    parts = list(takewhile(lambda part: not _OWN.fullmatch(part), filter(None, path.split("/"))))
    parent = hierarchy.joinpath(*parts)
    if ".." not in parts and parent.is_dir():
        return parent
    if path.endswith(" (deleted)"):  # only one that has ended is in a cgroup that was removed
        raise ProcessLookupError(f"process {pid} has ended")
    if uid is not None:
        raise PermissionError(f"process {pid} is in a cgroup that is not there: {path[:200]}")
    return hierarchy


def get_owners(pid: int) -> set[int]:
    """Return the real, effective, saved and file system user of a process: all one unless it is set-uid."""
    try:
        lines = Path("/proc", str(pid), "status").read_text(errors="replace").split("\n")
    except FileNotFoundError as gone:
        raise ProcessLookupError(f"there is no process {pid}") from gone
    return {int(user) for line in lines if line.startswith("Uid:") for user in line.split()[1:]}


def list_trees(roots: Iterable[int]) -> dict[int, str]:
    """Return processes with all their present descendants, and when each began: an empty text if a root is gone."""
    children: dict[int, list[int]] = {}
    began = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            pid = int(entry.name)
            try:
                fields = read_stat(pid)
            except (FileNotFoundError, ProcessLookupError):
                continue  # ended while we looked
            began[pid] = fields[19]
            children.setdefault(int(fields[1]), []).append(pid)
    queue = list(roots)
    trees = {pid: began.get(pid, "") for pid in queue}
    while queue:
        for pid in children.get(queue.pop(), []):
            if pid not in trees:
                trees[pid] = began[pid]
                queue.append(pid)
    return trees


def _remove_orphans(parent: Path) -> None:
    """Remove directories of monitors that were killed with -9.

    Their lock shows that they ended; a process number does not, since a namespace of processes has its own numbers.
    """
    for directory in parent.glob(f"{_PREFIX}*"):
        if not _OWN.fullmatch(directory.name):
            continue
        try:
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            continue  # its monitor ended at this moment
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            give_back(directory, parent)
        except BlockingIOError:
            continue  # its monitor lives
        finally:
            os.close(lock)


def give_back(directory: Path, parent: Path) -> None:
    """Move all processes in and below a cgroup to another one, and remove it; OSError when that fails for 2 s."""
    deadline = time.monotonic() + 2
    while True:
        try:
            for inner in _list_inner(directory):
                _empty(inner, parent)
                inner.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)  # a process forked, or one is still exiting
        else:
            return


def _list_inner(directory: Path) -> list[Path]:
    """Return a cgroup and those below it, the innermost first."""
    return sorted((Path(path) for path, _, _ in os.walk(directory)), key=lambda path: -len(path.parts))


def _empty(directory: Path, parent: Path) -> None:
    for pid in (directory / "cgroup.procs").read_text().split():
        with contextlib.suppress(ProcessLookupError):  # ended by itself
            (parent / "cgroup.procs").write_text(pid)
