"""Finds the write unit of a device: writes of many sizes, at multiples of their size and shifted, in one mixture.

A durable write that does not fill whole units pays for filling them, so a write of one size costs more when it is
shifted, and the cost over size is a saw-tooth (He et al., PVLDB 16(7), 2023, section 3.2). Every unit that could be is
tried: the one whose partly written units explain the times best is taken, if that is beyond chance and matters.
"""

import random
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np

from knobscope.statistics.arrays import Floats, average_groups

KIB = 1024
#: What a shifted write is shifted by: a page, the least by which file systems and DBMSs do.
SHIFT = 4 * KIB
#: Units that are looked for: multiples of the page to 128 KiB, and larger ones as flash pages and planes make them.
CANDIDATES = (*(size * KIB for size in range(8, 132, 4)), *(size * KIB for size in (192, 256, 384, 512)))
#: Sizes that are written shifted, too: those that whole units of 2^a * 3^b pages add up to.
_FEW = tuple(size * KIB for size in (8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512))

#: How many standard errors a cost has to be away from zero: some seventy hypotheses are tried on the same times.
_FEWEST_ERRORS = 6.0
#: A cost that is a smaller share of a write's time matters to nobody.
_LEAST_SHARE = 0.03
#: Share of the slowest writes of each size and position that is left out: the machine was away then.
_TRIMMED = 0.1


@dataclass(frozen=True)
class TimedWrite:
    """One write and what it took; the address is that on the device."""

    address: int
    size: int
    ns: float


@dataclass(frozen=True)
class UnitFinding:
    """What was found: the unit, or None; what a write costs that leaves units partly written, and how sure that is."""

    unit_bytes: int | None
    whole_us: float  # a write of 4 KiB, or of one unit, at a multiple of itself
    extra_us: float  # what partly written units add
    errors: float  # the cost over its standard error
    visible_us: float  # the smallest cost that would have been found

    @property
    def cost_us(self) -> float | None:
        """What partly written units add, where a unit was found."""
        return None if self.unit_bytes is None else self.extra_us

    @property
    def visible_share(self) -> float:
        """The smallest cost that would have been found, as a share of a write's time."""
        return self.visible_us / self.whole_us


def plan_writes(begin: int, end: int, repeats: int, *, sweep: bool) -> list[tuple[int, int]]:
    """Return writes (address, size) between two addresses of the device, in random order.

    Each repeat has every size once at a multiple of itself, and once more, shifted by a page. `sweep`: all candidates,
    otherwise a few.
    """
    rng = random.Random(1)  # noqa: S311 - the same addresses every time
    sizes = CANDIDATES if sweep else _FEW
    kinds = [(SHIFT, 0), *((size, shift) for size in sizes for shift in (0, SHIFT))]
    writes = []
    for _ in range(repeats):
        for size, shift in rng.sample(kinds, len(kinds)):
            first, last = -(-begin // size), (end - SHIFT) // size - 1
            if first <= last:
                writes.append((rng.randint(first, last) * size + shift, size))
    return writes


def find_unit(writes: Sequence[TimedWrite]) -> UnitFinding:
    """Return the unit that explains best what writes took.

    For each candidate the cost of writes that leave units partly written is estimated among writes of the same size:
    what larger writes take anyway is not counted. Both a device that fills all units at once and one that fills them
    one after the other is tried. Raises ValueError when there are no writes.
    """
    trimmed = list(_trim(writes))
    address, size, ns = np.array([(write.address, write.size, write.ns) for write in trimmed], float).T
    _, groups = np.unique(size, return_inverse=True)
    times = ns - average_groups(ns, groups)
    whole_us = float(np.median(ns[size == size.min()])) / 1000
    freedom = max(1, len(trimmed) - int(groups.max()) - 2)
    best: tuple[float, int, float, float] | None = None
    visible_us = _LEAST_SHARE * whole_us
    for unit in CANDIDATES:
        partly = _count_partly(address, size, unit)
        for predictor in (np.minimum(partly, 1), partly):
            part = predictor - average_groups(predictor, groups)
            spread = float(part @ part)
            if spread < 1:
                continue
            cost = float(part @ times) / spread
            residual = float(times @ times) - cost * cost * spread
            error = (max(residual, 1e-9) / freedom / spread) ** 0.5
            visible_us = max(visible_us, _FEWEST_ERRORS * error / 1000)
            if cost > 0 and (best is None or residual < best[0] * (1 - 1e-9)):
                best = (residual, unit, cost, error)
    if best is None:
        return UnitFinding(None, whole_us, 0.0, 0.0, visible_us)
    _, unit, cost, error = best
    is_clear = cost >= max(_FEWEST_ERRORS * error, _LEAST_SHARE * whole_us * 1000)
    aligned = ns[(address % unit == 0) & (size == unit)]
    if is_clear and len(aligned):
        whole_us = float(np.median(aligned)) / 1000
    return UnitFinding(unit if is_clear else None, whole_us, cost / 1000, cost / error, visible_us)


def _count_partly(address: Floats, size: Floats, unit: int) -> Floats:
    """Return how many units each write leaves partly written: none, one or two."""
    end = address + size
    head, tail = address % unit > 0, end % unit > 0
    in_one_unit = address // unit == (end - 1) // unit
    return np.where(in_one_unit, head | tail, head.astype(float) + tail)


def _trim(writes: Iterable[TimedWrite]) -> Iterator[TimedWrite]:
    """Yield the writes without the slowest of each size and position."""

    def kind(write: TimedWrite) -> tuple[int, bool]:
        return write.size, write.address % write.size > 0

    for _, group in groupby(sorted(writes, key=kind), kind):
        some = sorted(group, key=lambda write: write.ns)
        yield from some[: len(some) - int(len(some) * _TRIMMED)]
