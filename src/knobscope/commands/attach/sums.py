"""What the kernel's own sums say of a window, for machines without BPF: of the device, the processes, their stalls."""

import contextlib
import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from knobscope.commands.attach.facts import Facts, Operation
from knobscope.commands.attach.processes import PROC, find_hierarchy
from knobscope.commands.attach.target import Target
from knobscope.devices import BlockDevice
from knobscope.devices.disks import find_bottom_disks, read_stat
from knobscope.text.formats import format_share, format_size

#: Operation -> column of requests and of milliseconds in the device's `stat`
#: (https://docs.kernel.org/block/stat.html; flushes since 5.5).
_COLUMNS = {"read": (0, 3), "write": (4, 7), "discard": (11, 14), "flush": (15, 16)}
#: Milliseconds with a request in flight, and of all requests together. Before 6.10 the kernel takes each request that
#: begins for a whole tick of its clock: if the first are more than the second, they are not known.
_BUSY, _WEIGHTED = 9, 10
_ROUNDING = 1.1
_MILLISECONDS = {_BUSY, _WEIGHTED, *(column for _, column in _COLUMNS.values())}
#: The file system's journal writes for whoever flushes, and counts as nobody's: at each flush its own two blocks, and
#: three of what a file that grows changes.
_JOURNAL_BYTES = 5 * 4096
_SECTOR = 512
_WITHOUT_BPF = (
    "Without BPF: numbers of requests, times and depth are those of the whole device, from /proc/diskstats; sizes are "
    "means, and no order, file or owner of a request is known. A flush without data counts as a write, too."
)
_LIGHT = (
    "Light mode: numbers, sizes and times of requests are those of the whole device, and so is the depth while it "
    "is busy. The device's busy time is from /proc/diskstats."
)


@dataclass(frozen=True)
class Sums:
    """Counters at one moment; None: this machine has none, or not for us."""

    at_s: float
    device: list[int]
    written: int | None  # bytes that the server's processes read from and dirtied for storage, /proc/PID/io
    group: int | None  # bytes of the server's cgroup at the device, io.stat
    stalled_us: int | None  # in which a process waited for I/O, io.pressure
    pressure: str  # the file that says so


def read_sums(block: BlockDevice, target: Target) -> Sums:
    """Return the counters of this moment."""
    hierarchy, group = find_hierarchy(), target.place.cgroup
    directory = None if hierarchy is None or group is None else hierarchy / group.strip("/")
    pressures = [*([directory / "io.pressure"] if directory else []), Path("/proc/pressure/io")]
    pressure = next((path for path in pressures if path.exists()), None)
    return Sums(
        time.monotonic(),
        read_stat(block),
        _add_processes(target.list_processes()),
        None if directory is None else _read_group(directory / "io.stat", block),
        None if pressure is None else _read_stalled(pressure),
        "" if pressure is None else str(pressure),
    )


def complete_facts(facts: Facts, before: Sums, after: Sums) -> Facts:
    """Return facts that procfs lacks: times and depth of the whole device, and others' share of its bytes."""
    added = _subtract(before, after)
    operations = {op: _time_operation(op, operation, added) for op, operation in facts.operations.items()}
    depth = max(added[_WEIGHTED] / added[_BUSY], 1.0) if added[_BUSY] and _is_exact(added) else None
    return _add_shares(replace(facts, operations=operations, depth=depth), before, after)


def complete_light_facts(facts: Facts, before: Sums, after: Sums) -> Facts:
    """Return facts that light mode lacks, which knows the depth over the whole time."""
    shared, added = _add_shares(facts, before, after), _subtract(before, after)
    if shared.depth is None or not shared.busy_share:
        return shared
    if not _is_exact(added):
        return replace(shared, depth=None)
    return replace(shared, depth=shared.depth / shared.busy_share)


def _subtract(before: Sums, after: Sums) -> list[int]:
    """Return what each column has gained; milliseconds have 32 bits in the kernel."""
    columns = enumerate(zip(before.device, after.device, strict=True))
    return [(now - then) % (1 << 32) if i in _MILLISECONDS else now - then for i, (then, now) in columns]


def _is_exact(added: list[int]) -> bool:
    """Whether the time with a request in flight can be right: no more than all requests took, but for ticks."""
    return added[_BUSY] <= _ROUNDING * added[_WEIGHTED]


def _add_shares(facts: Facts, before: Sums, after: Sums) -> Facts:
    """Return facts with the share of the time that the device is busy, and that of others in its bytes."""
    added = _subtract(before, after)
    moved = (added[2] + added[6]) * _SECTOR
    own = _difference(before.group, after.group)
    own = _difference(before.written, after.written) if own is None else own
    of_journal = sum(added[_COLUMNS["flush"][0] :][:1]) * _JOURNAL_BYTES
    foreign = None if own is None or not moved else max(1 - (own + of_journal) / moved, 0.0)
    operations = {
        op: replace(operation, foreign_per_s=operation.device_per_s * (foreign or 0))
        for op, operation in facts.operations.items()
    }
    return replace(
        facts,
        operations=operations,
        busy_share=min(min(added[_BUSY], added[_WEIGHTED]) / (1000 * (after.at_s - before.at_s)), 1.0),
        foreign_share=foreign,
    )


def describe_sums(before: Sums, after: Sums, monitor: str) -> list[str]:
    """Return what the sums cannot say, and what they say in addition."""
    sentences = [_LIGHT if monitor == "light" else _WITHOUT_BPF]
    stalled = _difference(before.stalled_us, after.stalled_us)
    if stalled is not None:
        share = format_share(min(stalled / 1e6 / (after.at_s - before.at_s), 1.0))
        owner = "of this machine" if after.pressure.startswith("/proc") else "of the server"
        sentences.append(f"For {share} of the time a process {owner} waited for I/O ({after.pressure}).")
    written = _difference(before.written, after.written)
    if written is not None:
        sentences.append(f"The server's processes read and dirtied {format_size(written)} of files (/proc/PID/io).")
    return sentences


def _time_operation(op: str, operation: Operation, added: list[int]) -> Operation:
    requests, milliseconds = (added[column] if column < len(added) else 0 for column in _COLUMNS[op])
    if op == "write":  # the kernel counts the flush that a write asks for in the time of both
        milliseconds = max(milliseconds - sum(added[_COLUMNS["flush"][1] :][:1]), 0)
    return replace(operation, mean_us=1000 * milliseconds / requests if requests else None)


def _difference(before: int | None, after: int | None) -> int | None:
    return None if before is None or after is None else max(after - before, 0)


def _add_processes(pids: Iterable[int]) -> int | None:
    """Return bytes of all processes that we may ask; None: of none."""
    byte_counts = []
    for pid in pids:
        with contextlib.suppress(OSError):  # ended, or another user's
            lines = dict(line.split(": ") for line in (PROC / str(pid) / "io").read_text().splitlines())
            byte_counts.append(
                int(lines["read_bytes"]) + int(lines["write_bytes"]) - int(lines["cancelled_write_bytes"])
            )
    return sum(byte_counts) if byte_counts else None


def _read_group(file: Path, block: BlockDevice) -> int | None:
    groups: dict[str, dict[str, str]] = {}
    with contextlib.suppress(OSError):  # the controller is off
        for line in file.read_text().splitlines():
            number, *fields = line.split()
            groups[number] = dict(field.split("=") for field in fields)
    for device in (block, *find_bottom_disks(block)):  # a partition has no line of its own
        if values := groups.get(f"{device.major}:{device.minor}"):
            return int(values["rbytes"]) + int(values["wbytes"])
    return None


def _read_stalled(file: Path) -> int | None:
    with contextlib.suppress(OSError):  # pressure is not accounted
        return int(file.read_text().splitlines()[0].rpartition("total=")[2])
    return None
