"""Sums of a run from sysfs and procfs, for machines where BPF is not permitted."""

import contextlib
import os
import time
from collections.abc import Sequence
from typing import cast

from knobscope.devices import BlockDevice
from knobscope.devices.disks import read_stat
from knobscope.processes import list_tree, read_process_stat
from knobscope.tables import IoProfileRow, MonitorFacts, empty_row
from knobscope.watch.interface import OPERATIONS, Place, Profile, Scope, Watch, WatchFailedError
from knobscope.watch.levels import LevelMeter
from knobscope.watch.processors import ProcessorMeter
from knobscope.watch.sampling import WaitSampler

#: Operation -> column of requests and of 512-byte sectors in the device's `stat`
#: (https://docs.kernel.org/block/stat.html; discards since 4.18, flushes since 5.5).
_COLUMNS: dict[str, tuple[int, int | None]] = {
    "read": (0, 2),
    "write": (4, 6),
    "discard": (11, 13),
    "flush": (15, None),
}
_UNSEEN = (
    "what threads wait for could not be seen: that needs root, or the server's user with kernel.yama.ptrace_scope = 0, "
    "and a kernel with schedstat"
)
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


class ProcfsWatch(Watch):
    """Requests and bytes of the whole device, whoever caused them, and CPU time of the followed process trees.

    A request that only asks for a flush is a write without bytes here. CPU time of processes that left their tree,
    because their parent ended before them, is missed. Of servers that it is attached to it also tells what threads wait
    for, by looking at them many times a second.
    """

    monitor = "procfs"

    def __init__(self, block: BlockDevice, scope: Scope, reason: str | None = None) -> None:
        self.reason = reason
        self._scope = scope
        self._roots: list[int] = []
        self._block = block
        self._before: tuple[float, list[int], float, ProcessorMeter, LevelMeter] | None = None
        self._is_attached = False
        self._sampler: WaitSampler | None = None

    def follow(self, pids: Sequence[int]) -> None:
        """Remember the roots of the trees."""
        self._roots, self._is_attached = list(pids), False

    def attach(self, place: Place) -> None:
        """Remember the roots of the trees, at whose threads to look."""
        self._roots, self._is_attached = list(place.pids), True

    def begin(self) -> None:
        """Remember where the sums stand."""
        self.close()  # of a run that its caller gave up
        meters = ProcessorMeter(), LevelMeter(self._block)
        self._before = (time.monotonic(), self._read_stat(), _read_cpu_s(self._roots), *meters)
        if self._is_attached:
            self._sampler = WaitSampler(self._roots)
            self._sampler.start()

    def end(self) -> Profile:
        """Return what was added since `begin`."""
        if self._before is None:
            raise WatchFailedError("no run is being watched: `begin` comes before `end`")
        (begin, before, cpu_s, processors, levels), self._before = self._before, None
        ended, now = time.monotonic(), self._read_stat()
        waits = self._sampler.stop() if self._sampler else None
        self._sampler = None
        added_cpu_s = _read_cpu_s(self._roots) - cpu_s
        profile: Profile = {
            "duration_s": ended - begin,
            "monitor": "procfs",
            "scope": self._scope,
            "busy_share": None,
            "mean_depth": None,
            "depth_one_share": None,
            "busiest_queue_share": None,
            "requeues": None,
            "failed_requests": None,
            "io_profile": [_operation_row(op, before, now) for op in OPERATIONS],
            "io_sizes": [],
            "queue_depth": [],
            "io_latency": [],
            "queue_wait": [],
            "files": [],
            "addresses": [],
            "submitters": [],
            "series": [],
            # A process that ended where nobody of the tree waited for it has taken its CPU time along.
            "cpu_s": added_cpu_s if self._roots and added_cpu_s >= 0 else None,
            "machine_cpu_share": processors.busy_share(),
            "levels": levels.list_rows(),
        }
        profile |= cast("Profile", empty_row(MonitorFacts))
        if self._is_attached and waits is None:
            profile["limits"] = [_UNSEEN]
        return {**profile, **waits} if waits else profile

    def close(self) -> None:
        """End looking at threads."""
        if self._sampler:
            self._sampler.stop()

    def _read_stat(self) -> list[int]:
        try:
            return read_stat(self._block)
        except OSError as gone:
            raise WatchFailedError(f"{gone.filename} cannot be read: {gone.strerror}; is the device gone?") from gone


def _operation_row(op: str, before: list[int], now: list[int]) -> IoProfileRow:
    """Return a row of `io_profile`; facts about single requests, and whose they are, cannot be derived from sums."""
    requests, sectors = (_difference(column, before, now) for column in _COLUMNS[op])
    size = 0 if op == "flush" else None if sectors is None else sectors * 512
    row = empty_row(IoProfileRow)
    row |= {"op": op, "requests": requests, "bytes": size, "device_requests": requests, "device_bytes": size}
    return row


def _difference(column: int | None, before: list[int], now: list[int]) -> int | None:
    """Return what was added; None where this kernel does not count."""
    return now[column] - before[column] if column is not None and column < len(now) else None


def _read_cpu_s(roots: Sequence[int]) -> float:
    """Return the CPU time of process trees, with that of children that have ended and been waited for."""
    ticks = 0
    for pid in list_tree(roots):
        with contextlib.suppress(OSError):  # it has ended
            ticks += sum(map(int, read_process_stat(pid)[11:15]))  # utime, stime, cutime, cstime
    return ticks / _TICKS_PER_S
