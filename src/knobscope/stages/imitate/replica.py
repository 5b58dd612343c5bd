"""An I/O pattern in the words of fio: the variables of `probes/fio/replica.fio`."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from knobscope.devices import BlockDevice
from knobscope.devices.extents import inspect_file, read_partition_start
from knobscope.stages.characterise.fio import Engine, FioFile
from knobscope.stages.imitate.pattern import Pattern

_MOST_SIZES = 60  # fio takes 64
_MATTERING_BYTES = 0.05
_MIB = 1 << 20
_DEEPEST = 64
_UNUSED_SIZE = 4096
#: A number of writes that is so close to a whole one is taken for it.
_CLOSE = 0.02


@dataclass(frozen=True)
class Part:
    """A part of the test file, in bytes."""

    offset: int
    length: int


def find_aligned_part(file: FioFile, unit: int, block: BlockDevice) -> Part:
    """Return the part of a file that lies together on its device and begins at a multiple of a unit there.

    Where the file system does not tell where a file lies, it is the whole file.
    """
    try:
        extents = inspect_file(file.path).extents
    except OSError:
        return Part(0, file.bytes)
    longest = max(extents, key=lambda extent: extent.length, default=None)
    if longest is None:
        return Part(0, file.bytes)
    skipped = -(longest.address + read_partition_start(block)) % unit
    return Part(longest.offset + skipped, (longest.length - skipped) // _MIB * _MIB)


def plan_replica(pattern: Pattern, file: FioFile, part: Part | None = None) -> list[tuple[float, dict[str, object]]]:
    """Return the variables that make fio repeat a pattern on a file, or on a part of it.

    They come with the share of the writes that they are for: a flush after every 1.4 writes, which fio cannot do, is
    one after each of some writes and one after every second of the others. Shares add up to one.
    """
    part = part or Part(0, file.bytes)
    depth, jobs = _split(pattern, file.engine)
    sizes = [side or {_UNUSED_SIZE: 1} for side in (pattern.read_sizes, pattern.write_sizes)]
    step = pattern.align_bytes or _MIB
    step *= max(1, _MIB // step)
    variables: dict[str, object] = {
        "READS": _read_percent(pattern),
        "SIZES": ",".join(write_bssplit(side) for side in sizes),
        "ALIGN": f"{_find_alignment(sizes[0])},{pattern.align_bytes or _find_alignment(sizes[1])}",
        "RANDOM": f"{round(100 * pattern.read_random)},{round(100 * pattern.write_random)}",
        "DEPTH": depth,
        "JOBS": jobs,
        "SHIFT": part.offset + pattern.shift_bytes,
        "PART": (part.length - pattern.shift_bytes) // jobs // step * step,
    }
    return [(share, {**variables, "FDATASYNC": writes}) for share, writes in _divide_syncs(pattern)]


def _read_percent(pattern: Pattern) -> int:
    """Return the share of reads; where there are both, neither is rounded away, nor flushes with the writes."""
    percent = round(100 * pattern.reads / (pattern.reads + pattern.writes))
    return min(max(percent, 1), 99) if pattern.reads and pattern.writes else percent


def _split(pattern: Pattern, engine: Engine) -> tuple[int, int]:
    depth, jobs = engine.split(min(_DEEPEST, max(1, round(pattern.depth))))
    return depth, jobs * pattern.jobs


def _divide_syncs(pattern: Pattern) -> list[tuple[float, int]]:
    """Return fio's `fdatasync` (0 = never), for each share of the writes.

    It is fdatasync, which a file that was written before answers with one flush: fsync would write the time of change,
    too, through the journal. Between two writes fio (3.33) repeats it after every read of a mixed job, so that it does
    1 / (share of writes) times as many as asked: the count is made larger by as much.
    """
    if not pattern.flushes or not pattern.writes:
        return [(1.0, 0)]
    write_share = pattern.writes / (pattern.reads + pattern.writes)
    writes_per_sync = max(1.0, pattern.writes / pattern.flushes / write_share)
    if abs(writes_per_sync - round(writes_per_sync)) <= _CLOSE * writes_per_sync:
        return [(1.0, round(writes_per_sync))]
    few, many = math.floor(writes_per_sync), math.ceil(writes_per_sync)
    share = (1 / writes_per_sync - 1 / many) / (1 / few - 1 / many)
    return [(share, few), (1 - share, many)]


def write_bssplit(sizes: Mapping[int, int]) -> str:
    """Return a size histogram as fio's bssplit, whose percentages are whole numbers that sum to 100.

    A size that is rare but carries 5 % of the bytes or more stays in, with one percent.
    """
    common = dict(sorted(sizes.items(), key=lambda item: item[1])[-_MOST_SIZES:])
    total, total_bytes = sum(common.values()), sum(size * count for size, count in common.items())
    shares = {
        size: max(round(100 * count / total), int(size * count / total_bytes >= _MATTERING_BYTES))
        for size, count in common.items()
    }
    while excess := sum(shares.values()) - 100:  # from, or to, what rounding has moved furthest
        step = 1 if excess > 0 else -1
        movable = [size for size in shares if shares[size] > step]
        shares[max(movable, key=lambda size: step * (shares[size] - 100 * common[size] / total))] -= step
    return ":".join(f"{size}/{share}" for size, share in sorted(shares.items()) if share)


def _find_alignment(sizes: Mapping[int, int]) -> int:
    """Return what offsets are multiples of: the largest power of two in the most frequent size."""
    frequent = max(sizes, key=lambda size: sizes[size])
    return frequent & -frequent
