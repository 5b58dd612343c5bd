"""Who uses a modelled device: processes, noted in a file of its folder. It goes when the last of them is gone.

Inside a study that is the pipeline, so that the device stays from one job to the next; a command that is run by hand
owns the device itself. `knobscope devices up` notes an owner that never ends: `down` removes the device then.
"""

import json
import os
from pathlib import Path

from knobscope.durable_files import write_json
from knobscope.processes import PIPELINE_VARIABLE, read_start

#: Owner of a device that stays until somebody takes it down.
FOREVER = 0


def find_owner() -> int:
    """Return the process that a device brought up here belongs to: the pipeline, or this process without one."""
    named = os.environ.get(PIPELINE_VARIABLE)
    return int(named) if named is not None and Path("/proc", named).exists() else os.getpid()


def add_owner(file: Path, pid: int) -> None:
    """Note an owner; whoever holds the device's folder may do so."""
    owners = [*living_owners(file), (pid, _start_of(pid))]
    write_json(file, sorted(set(owners)))


def living_owners(file: Path) -> list[tuple[int, int]]:
    """Return the owners that still run, each with its start time: numbers of processes are used again."""
    if not file.exists():
        return []
    noted = [(int(pid), int(start)) for pid, start in json.loads(file.read_text())]
    return [(pid, start) for pid, start in noted if pid == FOREVER or _start_of(pid) == start]


def is_kept(file: Path) -> bool:
    """Whether the device stays until somebody takes it down."""
    return any(pid == FOREVER for pid, _ in living_owners(file))


def _start_of(pid: int) -> int:
    """Return when a process began, in ticks since boot; -1 when there is none, 0 for the owner that never ends."""
    start = 0 if pid == FOREVER else read_start(pid)
    return -1 if start is None else start
