"""Whose processes count (followed.bpf.h): how many cgroups, and what tells of processes that leave them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Iterator
from pathlib import Path

from kernel import Member

__all__ = [
    "FOLLOWED_HANDLERS",
    "FOLLOWED_HEADERS",
    "FOLLOWED_MEMBERS",
    "FOLLOWED_TRACEPOINTS",
    "MAX_GROUPS",
    "is_process",
    "list_processes",
    "list_threads",
]

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


def is_process(directory: Path) -> bool:
    """Whether a directory stands for one process, not for a cgroup: /proc/PID."""
    return directory.parent == Path("/proc")


def list_processes(groups: Iterable[Path]) -> Iterator[int]:
    """Yield the processes that are followed: of cgroups and those below, and those that are followed one by one."""
    for group in groups:
        yield from [int(group.name)] if is_process(group) else _read_numbers(group, "cgroup.procs")


def list_threads(groups: Iterable[Path]) -> Iterator[int]:
    """Yield their threads."""
    for group in groups:
        if not is_process(group):
            yield from _read_numbers(group, "cgroup.threads")
            continue
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # ended
            yield from [int(thread.name) for thread in (group / "task").iterdir()]


def _read_numbers(group: Path, name: str) -> Iterator[int]:
    for directory in (group, *(inner for inner in group.rglob("*") if inner.is_dir())):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, NotADirectoryError):  # removed
            yield from map(int, (directory / name).read_text().split())
