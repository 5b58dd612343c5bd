"""Loads the block program and reads its maps."""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disk import Disk
from epochs import EpochCounters, Totals, list_constants, sum_processors
from file_of import number_device
from followed import Group
from kernel import Kernel, UnavailableError
from needs import choose_handlers
from origins import FILE_CONSTANTS, Origins, clear_origins, read_origins
from program import Program
from typed import TypedProgram

OWNERS = ("unseen", "own", "inode", "journal", "flush", "foreign", "unknown")  # as the enums in the program
_ISSUED = 1
_CALLABLE = ("on_look",)
_SOURCE = Path(__file__).resolve().with_name("block.bpf.c")


@dataclass
class Snapshot:
    """Sums since the run began, for one point of its series."""

    at_ns: int
    totals: list[Totals]
    depth_area_ns: int


@dataclass
class Reading:
    """All counters of a run: per operation, per (operation, odd size), per queue time at each depth in ns."""

    begin_ns: int
    end_ns: int
    totals: list[Totals]
    details: list[Totals]
    odd_sizes: dict[tuple[int, int], int]
    depth_times: dict[int, list[int]]
    programs: list[dict[str, Any]]
    #: How long of the run requests counted as in flight that still do on an idle device: their ends were never seen.
    unended_ns: list[int]
    #: Of the page cache at the end: what is dirty, of all devices; what there is of files that are not all written.
    dirty_bytes: int
    unwritten_bytes: int
    moved_processes: int
    disks: int
    origins: Origins


class Counters(EpochCounters):
    """The loaded program. `start` opens a run, `stop` closes it and returns its counters."""

    def __init__(self, kernel: Kernel, disk: Disk, unit: int, scope: str) -> None:
        #: `untyped`: why the program had to be loaded without the kernel's types, which costs more; None: it was not.
        program, self.untyped = _load(kernel, disk, unit, scope)
        super().__init__(program, disk)
        for upper in disk.uppers:
            self["uppers"][number_device(upper)] = 1

    def follow(self, groups: Sequence[Group]) -> None:
        """Let the processes of these cgroups, and of those below, be the followed ones."""
        self._program.follow(groups)

    def start(self, groups: Sequence[Group]) -> int:
        """Clear the other set of counters and let it count; return the moment in ns of the monotonic clock.

        `groups`: the directories of the followed processes' cgroups; none: nobody is followed.
        """
        self._end_abandoned()
        self._clear(1 - self._set)
        self._forget_hidden()
        self._program.clear("streams")
        clear_origins(self._program)
        self._program.start_costs()
        self._program.follow(groups)
        return self._flip(is_following=bool(groups))

    def stop(self) -> Reading:
        """Freeze the run's counters and read them."""
        begin, used = int(self._config.since), self._set
        programs = self._program.list_costs()
        depths = self._read_depths()  # now: what follows takes a while, and requests go on
        end = self._flip(is_following=bool(self._config.is_following))
        unended = self._list_unended(begin, end) if self._disk.is_idle() else []
        return Reading(
            begin_ns=begin,
            end_ns=end,
            totals=self._sum("totals", used),
            details=self._sum("details", used),
            odd_sizes=self._read_odd_sizes(used),
            depth_times={queue: self._book(queue, used, depths[queue], end - begin) for queue in self._list_queues()},
            programs=programs,
            unended_ns=unended,
            dirty_bytes=_read_dirty_bytes(),
            unwritten_bytes=self._measure_unwritten(),
            moved_processes=self._program.count_moved(),
            disks=len(self._disk.parts),
            origins=read_origins(self._program),
        )

    def sample(self) -> Snapshot:
        """Read the sums of the run that is counted now; the rest of it stays in the kernel."""
        now = time.monotonic_ns()
        device = self._list_queues()[-1]
        times = self._book(device, self._set, self._read_depths()[device], now - int(self._config.since))
        totals = self._sum("totals", self._set)
        return Snapshot(now, totals, sum(depth * ns for depth, ns in enumerate(times)))

    def _list_queues(self) -> list[int]:
        """Return the queues' indexes in the map; with several the last one is the whole device."""
        return list(range(self._disk.queues + (self._disk.queues > 1)))

    def _clear(self, which: int) -> None:
        super()._clear(which)
        self._program.put("device_depths", which, self["device_depths"].Leaf())
        for queue in range(self._disk.queues):
            self._program.put("depths", which * self._disk.queues + queue, self["depths"].Leaf())

    def _forget_hidden(self) -> None:
        """Bring the depth of an idle device back to 0: some kernels hide completions from BPF programs."""
        queues = range(self._disk.queues + 1)
        states = {queue: self.get("queues", queue) for queue in queues}
        if not any(state.depth for state in states.values()) or not self._disk.is_idle():
            return
        self._program.clear("slots")
        for queue, state in states.items():
            state.depth = 0
            self._program.put("queues", queue, state)

    def _list_unended(self, begin_ns: int, end_ns: int) -> list[int]:
        slots = (leaf for _, leaf in self["slots"].items())
        ages = (end_ns - max(slot.issued_at, begin_ns) for slot in slots if slot.state == _ISSUED)
        return [age for age in ages if age > 0]  # the device may have been used since

    def _measure_unwritten(self) -> int:
        dirtied = list(self["dirtied"].items())  # inodes, and their numbers
        return sum(self._program.call("on_look", inode, number) for inode, number in dirtied) * mmap.PAGESIZE

    def _read_depths(self) -> dict[int, int]:
        """Return how many requests each queue has now."""
        return {queue: int(self.get("queues", queue).depth) for queue in self._list_queues()}

    def _book(self, queue: int, which: int, depth: int, duration_ns: int) -> list[int]:
        """Return ns spent at each depth; the time since the last event, at `depth`, the kernel has not booked."""
        times: list[int]
        if queue == self._list_queues()[-1]:
            times = sum_processors(self.get("device_depths", which))["time"]
        else:
            times = list(self.get("depths", which * self._disk.queues + queue).time)
        times[min(depth, len(times) - 1)] += max(duration_ns - sum(times), 0)
        return times


def _read_dirty_bytes() -> int:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(fields[1]) * 1024 for fields in lines if fields[0] in ("Dirty:", "Writeback:"))


def _load(kernel: Kernel, disk: Disk, unit: int, scope: str) -> tuple[Program, str | None]:
    for needed in ("block_rq_issue", "block_rq_complete"):
        if needed not in kernel.tracepoints:
            raise UnavailableError(f"this kernel has no tracepoint {needed}")
    arguments = (
        _SOURCE,
        kernel,
        choose_handlers(kernel, is_stacked=bool(disk.uppers)),
        _list_constants(kernel, disk, unit, scope),
    )
    try:
        return TypedProgram(*arguments, callable_functions=_CALLABLE), None
    except UnavailableError as refusal:
        try:
            return Program(*arguments, callable_functions=_CALLABLE), str(refusal)
        except UnavailableError as untyped:
            raise UnavailableError(f"{untyped}; with the kernel's types: {refusal}") from untyped


def _list_constants(kernel: Kernel, disk: Disk, unit: int, scope: str) -> dict[str, int | str]:
    dirtying = "writeback_dirty_folio" if "writeback_dirty_folio" in kernel.tracepoints else "writeback_dirty_page"
    return {
        **FILE_CONSTANTS,
        "IS_HIDDEN": int(disk.is_hidden),
        **list_constants(disk, unit),
        "STACKED": int(bool(disk.uppers)),
        "QUEUES": disk.queues,
        "SLOTS": disk.slots,
        "SCOPE_PROCESS": int(scope == "process"),
        "ARG_writeback_dirty": f"ARG_{dirtying}",
    }
