"""Whose processes count (followed.bpf.h): how many cgroups, and what tells of processes that leave them."""

from __future__ import annotations

from pathlib import Path

from kernel import Member

__all__ = [
    "FOLLOWED_HANDLERS",
    "FOLLOWED_HEADERS",
    "FOLLOWED_MEMBERS",
    "FOLLOWED_TRACEPOINTS",
    "MAX_GROUPS",
    "is_process",
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
