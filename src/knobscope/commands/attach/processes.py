"""Processes as /proc shows them: what they run, and in which cgroup."""

import contextlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from knobscope.errors import UserError
from knobscope.processes import list_ancestors

PROC = Path("/proc")
#: Names that the monitor gives to its own cgroups: a process in one of them comes from the cgroup above.
_OF_MONITOR = "knobscope-"


class ProcessEndedError(UserError):
    """There is no process with this number, or no longer."""

    def __init__(self, pid: int) -> None:
        super().__init__(f"attach: there is no process {pid}")
        self.pid = pid


def find_top(pid: int) -> int:
    """Return the server of a process: the oldest ancestor that runs the same program, without gaps."""
    program = read_executable(pid)
    for parent in list_ancestors(pid):
        if program is None or read_executable(parent) != program:
            break
        pid = parent
    return pid


def read_executable(pid: int) -> str | None:
    """Return the path of the program that a process runs, as it sees it; None where we may not know."""
    try:
        return str((PROC / str(pid) / "exe").readlink()).removesuffix(" (deleted)")
    except OSError:
        return None


def read_cgroup(pid: int) -> str | None:
    """Return the cgroup v2 of a process; None where there is none. ProcessEndedError: there is no such process."""
    try:
        lines = (PROC / str(pid) / "cgroup").read_text(errors="surrogateescape").split("\n")
    except (FileNotFoundError, ProcessLookupError) as gone:
        raise ProcessEndedError(pid) from gone
    path = next((line[3:] for line in lines if line.startswith("0::")), None)
    if path is None or "/.." in path:  # ours is a namespace that does not hold it
        return None
    return "/" + "/".join(part for part in path.split("/") if part and not part.startswith(_OF_MONITOR))


def find_hierarchy() -> Path | None:
    """Return where cgroup v2 is mounted; None: nowhere."""
    for line in (PROC / "self" / "mountinfo").read_text(errors="surrogateescape").splitlines():
        fields, _, filesystem = line.partition(" - ")
        if filesystem.split()[0] == "cgroup2":
            return Path(fields.split()[4])
    return None


def list_group(path: str) -> set[int]:
    """Return the processes in a cgroup v2 and below. UserError: there is no such cgroup."""
    hierarchy = find_hierarchy()
    directory = None if hierarchy is None else hierarchy / path.strip("/")
    if directory is None or not (directory / "cgroup.procs").exists():
        raise UserError(f"attach: there is no cgroup {path} below {hierarchy or 'a mount of cgroup v2'}")
    return set(_list_processes(Path(inner) for inner, _, _ in os.walk(directory)))


def _list_processes(directories: Iterable[Path]) -> Iterator[int]:
    for directory in directories:
        with contextlib.suppress(OSError):  # removed while we looked, or one of threads
            yield from map(int, (directory / "cgroup.procs").read_text().split())
