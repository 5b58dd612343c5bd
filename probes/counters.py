"""Loads the block program and reads its maps."""

from __future__ import annotations

import mmap
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disk import Disk
from epochs import EpochCounters, Totals, list_range
from kernel import Kernel, UnavailableError
from needs import choose_handlers
from origins import FILE_CONSTANTS, Origins, clear_origins, read_origins
from program import Program
from typed import TypedProgram

__all__ = ["OWNERS", "Counters", "Reading", "Snapshot"]

OWNERS = ("unseen", "own", "inode", "journal", "flush", "foreign", "unknown")  # as the enums in the program
_ISSUED = 1
_DEPTH_BITS, _TICK_BITS = 20, 4  # of a queue's state, as in depth.bpf.h
_ROOM_NS = 1 << (63 - _DEPTH_BITS + _TICK_BITS)
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
    origins: Origins


class Counters(EpochCounters):
    """The loaded program. `start` opens a run, `stop` closes it and returns its counters."""

    def __init__(self, kernel: Kernel, disk: Disk, unit: int, scope: str) -> None:
        #: `untyped`: why the program had to be loaded without the kernel's types, which costs more; None: it was not.
        program, self.untyped = _load(kernel, disk, unit, scope)
        super().__init__(program, disk)

    def follow(self, groups: Sequence[Path]) -> None:
        """Let the processes of these cgroups, and of those below, be the followed ones."""
        self._program.follow(groups)

    def start(self, groups: Sequence[Path]) -> int:
        """Clear the other set of counters and let it count; return the moment in ns of the monotonic clock.

        `groups`: the directories of the followed processes' cgroups; none: nobody is followed.
        """
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
        end = self._flip(is_following=bool(self._config.is_following))
        unended = self._list_unended(begin, end) if self._disk.is_idle() else []
        return Reading(
            begin_ns=begin,
            end_ns=end,
            totals=self._sum("totals", used),
            details=self._sum("details", used),
            odd_sizes=self._read_odd_sizes(used),
            depth_times={queue: self._read_depth(queue, used, begin, end) for queue in self._list_queues()},
            programs=programs,
            unended_ns=unended,
            dirty_bytes=_read_dirty_bytes(),
            unwritten_bytes=self._measure_unwritten(),
            moved_processes=self._program.count_moved(),
            origins=read_origins(self._program),
        )

    def sample(self) -> Snapshot:
        """Read the sums of the run that is counted now; the rest of it stays in the kernel."""
        now = time.monotonic_ns()
        totals = self._sum("totals", self._set)
        area = sum(cpu.area for cpu in self.get("device_depths", self._set))
        depth, duration = self._get_depth(self._list_queues()[-1], now)
        return Snapshot(now, totals, area + depth * max(min(duration, now - int(self._config.since)), 0))

    def _list_queues(self) -> list[int]:
        """Return the queues' indexes in the map; with several the last one is the whole device."""
        return list(range(self._disk.queues + (self._disk.queues > 1)))

    def _clear(self, which: int) -> None:
        super()._clear(which)
        self._program.put("device_depths", which, self["device_depths"].Leaf())
        for queue in range(self._disk.queues):
            self._program.put("queue_depths", which * self._disk.queues + queue, self["queue_depths"].Leaf())

    def _forget_hidden(self) -> None:
        """Bring the depth of an idle device back to 0: some kernels hide completions from BPF programs."""
        if not any(self._get_depth(queue)[0] for queue in self._list_queues()) or not self._disk.is_idle():
            return
        self._program.clear("slots")
        self._program.clear("queues")

    def _list_unended(self, begin_ns: int, end_ns: int) -> list[int]:
        slots = (leaf for _, leaf in self["slots"].items())
        ages = (end_ns - max(slot.issued_at, begin_ns) for slot in slots if slot.asked.state == _ISSUED)
        return [age for age in ages if age > 0]  # the device may have been used since

    def _measure_unwritten(self) -> int:
        dirtied = list(self["dirtied"].items())  # inodes, and their numbers
        return sum(self._program.call("on_look", inode, number) for inode, number in dirtied) * mmap.PAGESIZE

    def _get_depth(self, queue: int, now: int = 0) -> tuple[int, int]:
        """Return the depth, and how long it is so in ns; below 0 where it has changed since `now`."""
        moment, depth = divmod(int(self.get("queues", queue).state), 1 << _DEPTH_BITS)
        return depth, (now - (moment << _TICK_BITS) + _ROOM_NS) % (2 * _ROOM_NS) - _ROOM_NS

    def _read_depth(self, queue: int, which: int, begin: int, end: int) -> list[int]:
        """Return ns spent at each depth, with the time after the run's last event, which the kernel has not booked."""
        depth, _ = self._get_depth(queue)
        if queue == self._list_queues()[-1]:
            times = [sum(column) for column in zip(*(cpu.time for cpu in self.get("device_depths", which)), strict=True)]
        else:
            times = list(self.get("queue_depths", which * self._disk.queues + queue).time)
        times[min(depth, len(times) - 1)] += max(end - begin - sum(times), 0)
        return times


def _read_dirty_bytes() -> int:
    lines = (line.split() for line in Path("/proc/meminfo").read_text().splitlines())
    return sum(int(fields[1]) * 1024 for fields in lines if fields[0] in ("Dirty:", "Writeback:"))


def _load(kernel: Kernel, disk: Disk, unit: int, scope: str) -> tuple[Program, str | None]:
    for needed in ("block_rq_issue", "block_rq_complete"):
        if needed not in kernel.tracepoints:
            raise UnavailableError(f"this kernel has no tracepoint {needed}")
    arguments = (_SOURCE, kernel, choose_handlers(kernel), _list_constants(kernel, disk, unit, scope))
    try:
        return TypedProgram(*arguments, callable_functions=_CALLABLE), None
    except UnavailableError as refusal:
        return Program(*arguments, callable_functions=_CALLABLE), str(refusal)


def _list_constants(kernel: Kernel, disk: Disk, unit: int, scope: str) -> dict[str, int | str]:
    dirtying = "writeback_dirty_folio" if "writeback_dirty_folio" in kernel.tracepoints else "writeback_dirty_page"
    return {
        **FILE_CONSTANTS,
        "IS_HIDDEN": int(disk.is_hidden),
        **list_range(disk, unit),
        "QUEUES": disk.queues,
        "SLOTS": disk.slots,
        "SCOPE_PROCESS": int(scope == "process"),
        "ARG_writeback_dirty": f"ARG_{dirtying}",
    }
