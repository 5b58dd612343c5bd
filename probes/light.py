"""The light mode: requests, sizes, latencies and the mean depth of a device, from completions alone.

One event per request, whose times the kernel has noted itself. See light.bpf.c for what it cannot know.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

from block_profile import list_sizes, list_times
from disk import Disk
from epochs import OPERATIONS, EpochCounters, Totals, list_constants
from followed import Group
from kernel import Kernel, Member, Needs, UnavailableError
from program import Program, count_missed
from typed import TypedProgram

Row = dict[str, Any]

LIMIT = "light mode: owners, files, order, alignment and merges of requests, and the depth of each queue, are not known"
_SOURCE = Path(__file__).resolve().with_name("light.bpf.c")
_COMPLETED = (0, 4, 11)  # columns of `stat`: reads, writes, discards
_HANDLERS = {"block_rq_complete": "on_complete"}
_REQUEST = (
    Member("request", "q", 8),
    Member("request", "cmd_flags", 4),
    Member("request", "__data_len", 4),
    Member("request", "__sector", 8),
    Member("request", "start_time_ns", 8),
    Member("request", "io_start_time_ns", 8),
    Member("request", "rq_disk", 8, until="5.17"),
)
LIGHT_NEEDS = Needs(
    members=(
        *_REQUEST,
        Member("request_queue", "disk", 8, since="5.15"),
        Member("gendisk", "disk_name", 32),
    ),
    tracepoints={"block_rq_complete": "request"},
    heads={"request__END": _REQUEST},
    enums=("req_op", "req_opf"),  # req_opf until 6.0
    headers=("blk-mq", "blkdev"),
)


@dataclass
class LightSnapshot:
    """Sums since the run began, for one point of its series."""

    at_ns: int
    totals: list[Totals]


@dataclass
class LightReading:
    """All counters of a run, per operation."""

    begin_ns: int
    end_ns: int
    totals: list[Totals]
    details: list[Totals]
    odd_sizes: dict[tuple[int, int], int]
    programs: list[Row]
    completed: int  # without flushes, by the kernel's own count


class LightCounters(EpochCounters):
    """The loaded program. `start` opens a run, `stop` closes it and returns its counters; nobody is followed."""

    def __init__(self, kernel: Kernel, disk: Disk, unit: int) -> None:
        program, self.untyped = _load(kernel, disk, unit)
        super().__init__(program, disk)
        self._completed = 0

    def follow(self, groups: Sequence[Group]) -> None:
        """Do nothing: at a completion nobody knows whose request it is."""

    def start(self, groups: Sequence[Group]) -> int:
        """Clear the other set of counters and let it count; return the moment in ns of the monotonic clock."""
        self._end_abandoned()
        self._clear(1 - self._set)
        self._program.clear("parts")  # and `partial` with the configuration
        self._program.start_costs()
        began_ns = self._flip(is_following=bool(groups))
        self._completed = self._count_completed()
        return began_ns

    def stop(self) -> LightReading:
        """Freeze the run's counters and read them."""
        begin, used = int(self._config.since), self._set
        programs = self._program.list_costs()
        completed = self._count_completed() - self._completed
        end = self._flip(is_following=False)
        totals, details = self._sum("totals", used), self._sum("details", used)
        return LightReading(begin, end, totals, details, self._read_odd_sizes(used), programs, completed)

    def sample(self) -> LightSnapshot:
        """Read the sums of the run that is counted now."""
        return LightSnapshot(time.monotonic_ns(), self._sum("totals", self._set))

    def _count_completed(self) -> int:
        sums = [part.stat.read_text().split() for part in self._disk.parts]
        return sum(int(numbers[column]) for numbers in sums for column in _COMPLETED)


def summarise_light(reading: LightReading, snapshots: Sequence[LightSnapshot]) -> Row:
    """Return the profile of a run, without what is not known."""
    duration_ns = reading.end_ns - reading.begin_ns
    latency_ns = sum(totals["latency_ns"] for totals in reading.totals)
    seen = sum(totals["requests"] + totals["empty"] for totals in reading.totals[:-1])  # the last one: flushes
    return {
        "duration_s": duration_ns / 1e9,
        "monitor": "light",
        "scope": "device",
        "lost_events": sum(totals["lost"] for totals in reading.totals),
        # At least: the kernel's own count is taken within the window, and some kernels hide completions from programs.
        "hidden_completions": max(reading.completed - seen, 0),
        "missed_events": count_missed(reading.programs),
        "failed_requests": sum(totals["errors"] for totals in reading.totals),
        "requeues": None,
        "unattributed_share": None,
        "mean_depth": latency_ns / duration_ns,  # Little's law
        "io_profile": [
            {"op": op, **dict.fromkeys(("requests", "device_requests"), totals["requests"])}
            | dict.fromkeys(("bytes", "device_bytes"), totals["bytes"])
            for op, totals in zip(OPERATIONS, reading.totals, strict=True)
        ],
        "io_sizes": list_sizes(reading.details, reading.odd_sizes),
        "queue_depth": [],
        "io_latency": list_times(reading.details, "latency"),
        "queue_wait": [],
        "files": [],
        "series": _list_intervals(reading.begin_ns, snapshots),
        "programs": reading.programs,
        "limits": _list_limits(reading.totals),
    }


def _list_limits(totals: Sequence[Totals]) -> list[str]:
    timed, made, requests = (sum(row[name] for row in totals) for name in ("timed", "made", "requests"))
    limits = []
    if timed < requests:
        limits.append(f"{requests - timed} requests have no latency, nor a part in the depth: queue/iostats is off")
    if made:
        limits.append(f"latency and depth of {made} requests count from when they were made, not issued")
    return limits


def _list_intervals(begin_ns: int, snapshots: Sequence[LightSnapshot]) -> list[Row]:
    rows = []
    for before, after in pairwise(snapshots):
        added = [
            {name: now[name] - then[name] for name in ("requests", "bytes", "timed", "latency_ns")}
            for then, now in zip(before.totals, after.totals, strict=True)
        ]
        depth = sum(row["latency_ns"] for row in added) / max(after.at_ns - before.at_ns, 1)
        rows += [
            {
                "t_s": (after.at_ns - begin_ns) / 1e9,
                "op": op,
                "requests": row["requests"],
                "bytes": row["bytes"],
                "depth": depth,
                "latency_mean_us": row["latency_ns"] / row["timed"] / 1e3 if row["timed"] else None,
            }
            for op, row in zip(OPERATIONS, added, strict=True)
            if row["requests"]
        ]
    return rows


def _load(kernel: Kernel, disk: Disk, unit: int) -> tuple[Program, str | None]:
    if "block_rq_complete" not in kernel.tracepoints:
        raise UnavailableError("this kernel has no tracepoint block_rq_complete")
    arguments = (_SOURCE, kernel, _HANDLERS, list_constants(disk, unit))
    try:
        return TypedProgram(*arguments), None
    except UnavailableError as refusal:
        return Program(*arguments), str(refusal)
