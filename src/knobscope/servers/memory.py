"""A limit on the memory of a DBMS, its share of the page cache included: a control group of its own, v1 or v2."""

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from knobscope.errors import UserError
from knobscope.processes import hold_directory, list_tree, remove_if_abandoned

_PREFIX = "knobscope-memory-"
#: What counts kills, in v2 and v1 of control groups.
_EVENTS = ("memory.events", "memory.oom_control")
_FILES = {"cgroup": "memory.limit_in_bytes", "cgroup2": "memory.max"}
#: What bounds swap: in version 1 memory and swap together.
_SWAP_FILES = {"cgroup": "memory.memsw.limit_in_bytes", "cgroup2": "memory.swap.max"}
_REMOVAL_S = 5.0


class MemoryLimit:
    """A control group; processes that are added, and all that they start, share its limit. Without one: no limit."""

    def __init__(self, group: Path | None, mib: int = 0) -> None:
        self._group, self.mib = group, mib

    @property
    def has_killed(self) -> bool:
        """Whether a process was killed because the limit did not suffice."""
        if self._group is None:
            return False
        events = next(path for name in _EVENTS if (path := self._group / name).exists()).read_text()
        return any(line.startswith("oom_kill ") and line.split()[1] != "0" for line in events.splitlines())

    def add(self, pid: int) -> None:
        """Move a process and its descendants into the group."""
        if self._group is None:
            return
        inside: set[int] = set()
        while new := set(list_tree([pid])) - inside:  # until a look finds no new forks
            for member in new:
                with contextlib.suppress(ProcessLookupError):  # it has ended
                    (self._group / "cgroup.procs").write_text(str(member))
            inside |= new


@contextmanager
def limit_memory(mib: int | None) -> Iterator[MemoryLimit]:
    """Yield a limit of `mib` MiB, removed at the end; UserError when control groups of memory cannot be made here."""
    if mib is None:
        yield MemoryLimit(None)
        return
    try:
        group, holding = _make_group(mib << 20)
    except OSError as error:
        reason = f"{error.filename}: {error.strerror}" if error.filename else str(error)
        raise UserError(
            f"the workload limits memory to {mib} MiB, and no control group can be made here ({reason}); "
            "start knobscope as root, or leave out memory_mib"
        ) from error
    try:
        yield MemoryLimit(group, mib)
    finally:
        _remove(group)
        os.close(holding)


def _make_group(size: int) -> tuple[Path, int]:
    kind, parent = _find_parent()
    if kind == "cgroup2" and "memory" not in (parent / "cgroup.subtree_control").read_text().split():
        (parent / "cgroup.subtree_control").write_text("+memory")
    for leftover in parent.glob(f"{_PREFIX}*"):
        remove_if_abandoned(leftover, _remove_empty)
    group = parent / f"{_PREFIX}{os.getpid()}-{time.monotonic_ns():x}"
    group.mkdir()
    holding = hold_directory(group)
    (group / _FILES[kind]).write_text(str(size))
    if (swap := group / _SWAP_FILES[kind]).exists():  # what is over the limit must not be I/O on the system's disk
        swap.write_text("0" if kind == "cgroup2" else str(size))
    return group, holding


def _remove_empty(group: Path) -> None:
    with contextlib.suppress(OSError):  # something still runs in it
        group.rmdir()


def _find_parent() -> tuple[str, Path]:
    """Return the kind of hierarchy that controls memory, and where new groups go: below ours, or at the top of v2."""
    for line in Path("/proc/mounts").read_text(errors="surrogateescape").splitlines():
        _, mount, kind, options, *_ = line.split()
        if kind == "cgroup" and "memory" in options.split(","):
            own = [
                entry.split(":", 2)[2]
                for entry in Path("/proc/self/cgroup").read_text(errors="surrogateescape").splitlines()
                if "memory" in entry.split(":")[1].split(",")
            ]
            below = Path(mount + own[0]) if own else Path(mount)
            return kind, below if below.is_dir() else Path(mount)
        if kind == "cgroup2" and "memory" in Path(mount, "cgroup.controllers").read_text().split():
            return kind, Path(mount)
    raise OSError("no hierarchy of control groups has the memory controller")


def _remove(group: Path) -> None:
    """Remove the group; its last process may need a moment to be gone."""
    deadline = time.monotonic() + _REMOVAL_S
    while True:
        try:
            group.rmdir()
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)
        else:
            return
