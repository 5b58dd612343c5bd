"""Whose processes count (followed.bpf.h): how many cgroups, and what tells of processes that leave them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple, Union

from kernel import Member

MAX_GROUPS = 8
FOLLOWED_HANDLERS = {"sched_process_fork": "on_fork", "cgroup_attach_task": "on_attach"}
FOLLOWED_TRACEPOINTS = dict.fromkeys(FOLLOWED_HANDLERS, "task_struct")
FOLLOWED_MEMBERS = (
    Member("task_struct", "tgid", 4),
    Member("task_struct", "cgroups", 8),
    Member("css_set", "dfl_cgrp", 8),
    Member("cgroup", "kn", 8),
    Member("kernfs_node", "id", 8),
    Member("cgroup_subsys_state", "parent", 8),
)
FOLLOWED_HEADERS = ("cgroup-defs", "kernfs")


class Process(NamedTuple):
    """A process that is followed on its own; when it began tells it from a later one that gets its number."""

    pid: int
    began: str

    def is_there(self) -> bool:
        """Whether it has its number still; what was asked about the number before is true of it then."""
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):
            return read_stat(self.pid)[19] == self.began
        return False


#: The directory of a cgroup, or a process.
Group = Union[Path, Process]  # noqa: UP007 - also at run time, where Python may be 3.9


def read_stat(pid: int) -> list[str]:
    """Return what the kernel says of a process, from its state on: parent in column 1, start in column 19."""
    return Path("/proc", str(pid), "stat").read_text(errors="replace").rsplit(")", 1)[1].split()


def list_processes(groups: Iterable[Group]) -> Iterator[int]:
    """Yield the processes that are followed: of cgroups and those below, and those that are followed one by one."""
    for group in groups:
        if not isinstance(group, Process):
            yield from _read_numbers(group, "cgroup.procs")
        elif group.is_there():
            yield group.pid


def list_threads(groups: Iterable[Group]) -> Iterator[int]:
    """Yield their threads."""
    for group in groups:
        if not isinstance(group, Process):
            yield from _read_numbers(group, "cgroup.threads")
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended
            threads = [int(thread.name) for thread in Path("/proc", str(group.pid), "task").iterdir()]
            yield from threads if group.is_there() else ()


def _read_numbers(group: Path, name: str) -> Iterator[int]:
    for directory in (group, *(inner for inner in group.rglob("*") if inner.is_dir())):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, NotADirectoryError):  # removed
            yield from map(int, (directory / name).read_text().split())
