"""An I/O pattern as the block layer saw it, and the same pattern with one factor changed.

The method is that of a controlled experiment: all properties of the DBMS's I/O are held, one is set to another value,
and fio shows what the device makes of that one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from knobscope.text.formats import format_number, format_share, format_size, loosen_units

#: Share of writes by which more have to fill whole units, as an effect has to matter.
_MORE_WHOLE = 0.05

#: Depth 32 as several jobs, so that each has its own flushes, streams and, where there are several, hardware queue.
_WIDE_JOBS, _WIDE_DEPTH = 8, 4


@dataclass(frozen=True)
class Pattern:
    """What kinds of requests reached a device, in which mix; counts are of requests."""

    reads: int
    writes: int
    read_sizes: Mapping[int, int]  # bytes -> requests
    write_sizes: Mapping[int, int]
    read_random: float  # share that does not continue a stream, 0..1
    write_random: float
    flushes: float
    depth: float  # mean requests in flight while busy
    jobs: int = 1  # independent submitters; `depth` is that of each
    operations: float = 0.0  # of the DBMS, that these requests are for; 0 where nobody knows
    shift_bytes: int = 0  # by how much all offsets are moved
    align_bytes: int = 0  # what offsets of writes are multiples of; 0: as their size says

    @property
    def requests_per_operation(self) -> float:
        """Reads and writes for one operation of the DBMS."""
        return (self.reads + self.writes) / self.operations

    @cached_property
    def mean_write_bytes(self) -> float:
        """Mean size of a write."""
        return sum(size * count for size, count in self.write_sizes.items()) / sum(self.write_sizes.values())

    def describe(self) -> str:
        """Return the pattern in words."""
        share = self.reads / (self.reads + self.writes)
        parts = [f"{loosen_units(format_share(share))} reads"]
        if self.writes:
            number = format_number(self.flushes / self.writes)
            flushed = f", {number} {'flush' if number == '1' else 'flushes'} per write" if self.flushes else ""
            parts.append(f"writes of {loosen_units(format_size(self.mean_write_bytes))} on average{flushed}")
        depth = f"depth {format_number(self.depth)}"
        return ", ".join([*parts, depth])


def take_sizes(pattern: Pattern, source: Pattern) -> Pattern:
    """Return the pattern with the write sizes of another one: as many bytes, in other pieces.

    Reads and flushes per operation stay, so fewer and larger writes mean relatively more of both.
    """
    if not pattern.write_sizes or not source.write_sizes:
        return pattern
    writes = pattern.writes * pattern.mean_write_bytes / source.mean_write_bytes
    return _scaled(replace(pattern, write_sizes=source.write_sizes), writes, pattern.flushes)


def can_take_sizes(pattern: Pattern, source: Pattern | None, unit: int) -> bool:
    """Whether writes of another pattern fill more units whole, and their sizes can be exchanged without losing flushes.

    Larger writes are fewer, and each can be followed by one flush at most.
    """
    if source is None or not source.write_sizes:
        return False
    growth = source.mean_write_bytes / pattern.mean_write_bytes
    fills_more = _share_of_whole(source, unit) - _share_of_whole(pattern, unit) >= _MORE_WHOLE
    return fills_more and pattern.flushes <= pattern.writes / growth


def _share_of_whole(pattern: Pattern, unit: int) -> float:
    """Return the share of writes that can fill whole units."""
    whole = sum(count for size, count in pattern.write_sizes.items() if size % unit == 0)
    return whole / sum(pattern.write_sizes.values())


def count_partly_filled(pattern: Pattern, unit: int) -> float:
    """Return how many units the writes fill in part per operation, at most.

    Writes begin at multiples of their size, so that one whose size divides the unit lies in one of them.
    """
    if not pattern.write_sizes:
        return 0.0
    parts = {size: 0 if size % unit == 0 else 1 if unit % size == 0 else 2 for size in pattern.write_sizes}
    filled = sum(parts[size] * count for size, count in pattern.write_sizes.items())
    return filled / sum(pattern.write_sizes.values()) * pattern.writes / pattern.operations


def write_whole_units(pattern: Pattern, unit: int) -> Pattern:
    """Return the pattern with as many writes and flushes, each write of as many whole units as it lies in at least."""
    sizes: dict[int, int] = {}
    for size, count in pattern.write_sizes.items():
        whole = -(-size // unit) * unit
        sizes[whole] = sizes.get(whole, 0) + count
    return replace(pattern, write_sizes=sizes, align_bytes=unit)


def take_flushes(pattern: Pattern, source: Pattern | None) -> Pattern:
    """Return the pattern with as many flushes per operation as another one has; without one, with none."""
    flushes = pattern.operations * source.flushes / source.operations if source is not None else 0.0
    return replace(pattern, flushes=flushes)


def take_reads(pattern: Pattern, source: Pattern) -> Pattern:
    """Return the pattern with as many reads per operation as another one has, in its sizes and order."""
    reads = round(pattern.operations * source.reads / source.operations)
    return replace(pattern, reads=reads, read_sizes=source.read_sizes, read_random=source.read_random)


def change_alignment(pattern: Pattern, preferred_bytes: int) -> tuple[Pattern, Pattern]:
    """Return a pattern's bytes and flushes in pieces of the preferred size, across its limits and on them.

    The two differ in where writes begin, and in nothing else: all have one size.
    """
    writes = pattern.writes * pattern.mean_write_bytes / preferred_bytes
    alone = replace(pattern, reads=0, read_sizes={}, write_sizes={preferred_bytes: 1}, write_random=1.0)
    alone = replace(alone, align_bytes=preferred_bytes)
    aligned = _scaled(alone, writes, pattern.flushes)
    return replace(aligned, shift_bytes=preferred_bytes // 2), aligned


def _scaled(pattern: Pattern, writes: float, flushes: float) -> Pattern:
    """Return a pattern with this number of writes; counts are whole, and small ones keep their ratios."""
    scale = max(1.0, 1000 / writes)
    return replace(
        pattern,
        operations=pattern.operations * scale,
        reads=round(pattern.reads * scale),
        writes=round(writes * scale),
        flushes=flushes * scale,
    )


def change_parallelism(pattern: Pattern) -> Pattern:
    """Return the same requests from more submitters, 32 in flight together."""
    return replace(pattern, jobs=_WIDE_JOBS, depth=_WIDE_DEPTH)


def change_sequentiality(pattern: Pattern) -> Pattern:
    """Return the same requests at random offsets."""
    return replace(pattern, read_random=1.0, write_random=1.0)
