"""What counts requests: a program whose counters of one run at a time are kept apart from the next one's by epoch.

Two sets of counters take turns. A run gets a fresh set by one write to the configuration, so that nothing is counted
twice or lost at its borders, and requests in flight at that moment are distinguished from its own.
"""

from __future__ import annotations

import ctypes
import struct
import time
from typing import Any

from disk import Disk
from program import Program

OPERATIONS = ("read", "write", "discard", "flush")
_NAME = struct.Struct("=4Q")  # gendisk.disk_name

Totals = dict[str, Any]  # field of struct totals_t or details_t -> number or list of numbers


class EpochCounters:
    """A loaded program that includes device.bpf.h, and its maps `config`, `totals`, `details` and `odd_sizes`."""

    def __init__(self, program: Program, disk: Disk) -> None:
        self._program, self._disk = program, disk
        self._config = self["config"].Leaf()
        first_queue = 0
        for part, leaf in zip(disk.parts, self._config.disks, strict=True):
            leaf.name[:] = _NAME.unpack(part.requests.name.encode().ljust(_NAME.size, b"\0"))
            leaf.first_sector, leaf.end_sector, leaf.first_queue = part.first_sector, part.end_sector, first_queue
            first_queue += part.queues
        self._program.put("config", 0, self._config)

    def close(self) -> None:
        """Detach all programs."""
        self._program.close()

    def __getitem__(self, table: str) -> Any:
        """Return a map."""
        return self._program[table]

    def get(self, table: str, key: int) -> Any:
        """Return an element of an array; of a per-CPU array the values of all CPUs."""
        return self._program.get(table, key)

    @property
    def _set(self) -> int:
        return int(self._config.epoch) & 1

    def _flip(self, *, is_following: bool) -> int:
        learnt = self.get("config", 0).disks  # the kernel side notes there where it has found the disks
        now = time.monotonic_ns()
        self._config = self["config"].Leaf(now, self._config.epoch + 1, is_following, 0, learnt)
        self._program.put("config", 0, self._config)
        return now

    def _end_abandoned(self) -> None:
        """End a run whose caller gave it up: only odd epochs are measured, and the next one has to be odd."""
        if self._set:
            self._flip(is_following=False)

    def _clear(self, which: int) -> None:
        for op in range(len(OPERATIONS)):
            self._program.put("totals", which * len(OPERATIONS) + op, self["totals"].Leaf())
            self._program.put("details", which * len(OPERATIONS) + op, self["details"].Leaf())
        for key in [key for key, _ in self["odd_sizes"].items() if key.set == which]:
            del self["odd_sizes"][key]

    def _sum(self, table: str, which: int) -> list[Totals]:
        """Return the sums over all CPUs, per operation."""
        return [sum_processors(self.get(table, which * len(OPERATIONS) + op)) for op in range(len(OPERATIONS))]

    def _read_odd_sizes(self, which: int) -> dict[tuple[int, int], int]:
        return {(key.op, key.bytes): count for key, count in self["odd_sizes"].items() if key.set == which}


def list_constants(disk: Disk, unit: int) -> dict[str, int | str]:
    """Return the constants of device.bpf.h, and the unit."""
    return {"DISKS": len(disk.parts), "UNIT_BYTES": unit}


def sum_processors(cpus: Any) -> Totals:
    """Return the sums over all processors of an element of a per-CPU array."""
    sums: Totals = {}
    for name, kind in cpus._type_._fields_:
        values = [getattr(cpu, name) for cpu in cpus]
        is_array = issubclass(kind, ctypes.Array)
        sums[name] = [sum(column) for column in zip(*values, strict=True)] if is_array else sum(values)
    return sums
