"""An I/O pattern as the block layer saw it, and the same pattern with one factor changed.

The method is that of a controlled experiment: all properties of the DBMS's I/O are held, one is set to another value,
and fio shows what the device makes of that one.
"""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

__all__ = ["Pattern", "change_parallelism", "change_sequentiality", "change_size"]

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

    @cached_property
    def mean_write_bytes(self) -> float:
        """Mean size of a write."""
        return sum(size * count for size, count in self.write_sizes.items()) / sum(self.write_sizes.values())

    def describe(self) -> str:
        """Return the pattern in words."""
        share = self.reads / (self.reads + self.writes)
        parts = [f"{share:.0%} reads"]
        if self.writes:
            flushed = f", {self.flushes / self.writes:.2f} flushes per write" if self.flushes else ""
            parts.append(f"writes of {self.mean_write_bytes / 1024:.3g} KiB on average{flushed}")
        depth = f"depth {self.depth:.1f}"
        return ", ".join([*parts, depth])


def change_size(pattern: Pattern, preferred_bytes: int) -> tuple[Pattern, Pattern]:
    """Return the pattern, and the same bytes written in pieces of the preferred size.

    Reads and flushes per written byte stay as they are, so fewer and larger writes mean relatively more of both. Where
    that would take more than one flush per write, flushing would decide instead of the size: both go without flushes.
    """
    writes = pattern.writes * pattern.mean_write_bytes / preferred_bytes
    if pattern.flushes > min(writes, pattern.writes):
        pattern = replace(pattern, flushes=0)
    scale = max(1.0, 1000 / writes)  # counts are whole numbers: keep their ratios for small ones too
    changed = replace(
        pattern,
        reads=round(pattern.reads * scale),
        writes=round(writes * scale),
        flushes=pattern.flushes * scale,
        write_sizes={preferred_bytes: 1},
    )
    return pattern, changed


def change_parallelism(pattern: Pattern) -> tuple[Pattern, Pattern]:
    """Return the pattern, and the same requests from more submitters, 32 in flight together."""
    return pattern, replace(pattern, jobs=_WIDE_JOBS, depth=_WIDE_DEPTH)


def change_sequentiality(pattern: Pattern) -> tuple[Pattern, Pattern]:
    """Return the pattern, and the same requests at random places."""
    return pattern, replace(pattern, read_random=1.0, write_random=1.0)
