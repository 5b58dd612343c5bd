"""Which of many possible configurations to run next: the sampling methods, on level numbers.

`knobscope plan` picks from configurations that a study may run, `knobscope replay` from rows of a table that holds
every setting; both use these. Random, balanced, stratified and distribution-aware sampling are those of Hui et al., "On
the Feasibility and Benefits of Extensive Evaluation" (SIGMOD 2024, section 4; the authors' code is at
github.com/huiyujie/ExtensiveEval); active sampling is ours.
"""

import math
import warnings
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import combinations

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.looks import LEAST_TO_STOP


@dataclass(frozen=True)
class Draw:
    """One step of sampling: `count` more rows, given those taken so far and their responses.

    `codes` has a row per possible configuration and a column per knob, the index into the knob's levels; `levels` is
    how many there are of each knob. Taken rows without a response (not measured, or failed) are NaN there.
    """

    codes: Ints
    levels: tuple[int, ...]
    taken: Ints
    response: Floats
    count: int
    rng: np.random.Generator

    @property
    def free(self) -> Ints:
        """Rows not taken yet, in random order."""
        return self.rng.permutation(np.setdiff1d(np.arange(len(self.codes)), self.taken))

    @property
    def coordinates(self) -> Floats:
        """Levels at the middle of equal parts of 0..1, in their order: a row per configuration."""
        return np.asarray((self.codes + 0.5) / np.array(self.levels))

    @property
    def known(self) -> tuple[Ints, Floats]:
        """Taken rows that have a response, and it."""
        has = np.isfinite(self.response)
        return self.taken[has], self.response[has]


#: Share of every step of active sampling that is drawn by a Latin hypercube, after the first rows.
LHS_SHARE = 0.5

Sampler = Callable[[Draw], Ints]


def pick_random(draw: Draw) -> Ints:
    """Take rows uniformly at random."""
    return draw.free[: draw.count]


def pick_balanced(draw: Draw) -> Ints:
    """Take, one after the other, the row whose levels were taken least often so far."""
    free = draw.free
    counts = [
        np.bincount(draw.codes[draw.taken, j], minlength=levels).astype(float) * levels
        for j, levels in enumerate(draw.levels)
    ]
    chosen = []
    for _ in range(min(draw.count, len(free))):
        load = np.sum([count[draw.codes[free, j]] for j, count in enumerate(counts)], axis=0)
        pick = int(np.argmin(load))
        for j, count in enumerate(counts):
            count[draw.codes[free[pick], j]] += draw.levels[j]
        chosen.append(int(free[pick]))
        free = np.delete(free, pick)
    return np.array(chosen, dtype=np.int64)


def pick_stratified(draw: Draw) -> Ints:
    """Take equally many rows per level of one knob: the one with the rarest level among the taken rows."""
    free = draw.free
    rarest = [
        np.bincount(draw.codes[draw.taken, j], minlength=levels).min() * levels for j, levels in enumerate(draw.levels)
    ]
    stratum = draw.codes[free, int(np.argmin(rarest))]
    order = np.argsort(stratum, kind="stable")
    rank_in_stratum = np.arange(len(free)) - np.searchsorted(stratum[order], stratum[order])
    return free[order[np.argsort(rank_in_stratum, kind="stable")]][: draw.count]


def pick_lhs(draw: Draw) -> Ints:
    """Take the free rows at the points of a Latin hypercube, each of which every free row is equally likely to be at.

    A coordinate of a point is a quantile of its knob, among the rows that have the levels of the knobs before: where
    the table holds every setting, that cuts each axis into the knob's levels (Rosenblatt 1952).
    """
    free, seed = draw.free, draw.rng.integers(2**31)
    chosen = []
    for point in latin_hypercube(len(draw.levels), draw.count, np.random.RandomState(seed))[: len(free)]:
        rows = free
        for codes, share in zip(draw.codes.T, point, strict=True):
            rows = rows[codes[rows] == np.sort(codes[rows])[int(share * len(rows))]]
        chosen.append(int(rows[0]))
        free = free[free != rows[0]]
    return np.array(chosen, dtype=np.int64)


def latin_hypercube(dimensions: int, count: int, rng: np.random.RandomState) -> Floats:
    """Return a Latin hypercube of pyDOE2: points of the unit cube, shape (count, dimensions)."""
    if count < 2:
        return rng.random_sample((count, dimensions))
    try:
        from pyDOE2 import lhs  # imports on Python 3.11 only
    except ImportError:
        from pydoe import lhs  # its maintained successor
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*random_state.*")  # its other argument gives other numbers
        points: Floats = lhs(dimensions, samples=count, random_state=rng)
    return points


def pick_distribution_aware(draw: Draw) -> Ints:
    """Take rows with a probability in proportion to how much the response varies among their nearest taken rows.

    The variation is the mean slope between neighbours: difference of the response by distance. At random while fewer
    than three responses are known.
    """
    from scipy.spatial import KDTree

    rows, response = draw.known
    if len(rows) < 3:
        return pick_random(draw)
    coordinates, free = draw.coordinates, draw.free
    neighbours = min(2 ** len(draw.levels), 16, len(rows))
    _, near = KDTree(coordinates[rows]).query(coordinates[free], k=neighbours)
    points, heights = coordinates[rows][near], response[near]
    distance = np.sqrt(((points[:, :, None, :] - points[:, None, :, :]) ** 2).sum(axis=3))
    rise = np.abs(heights[:, :, None] - heights[:, None, :])
    slope = np.divide(rise, distance, out=np.zeros_like(rise), where=distance > 0).mean(axis=(1, 2))
    if not slope.any():
        return pick_random(draw)
    weight = slope + 1e-6 * slope.max()
    return draw.rng.choice(free, size=min(draw.count, len(free)), replace=False, p=weight / weight.sum())


def pick_active(draw: Draw) -> Ints:
    """Take half of the rows by a Latin hypercube, and the first ones all, then those that `pick_least_known` takes.

    The hypercube's rows come first: they are what the stop rule is checked with, because rows that were chosen do not
    stand for the others.
    """
    drawn = pick_lhs(replace(draw, count=count_random("active", draw.count, len(draw.taken))))
    rows, response = np.append(draw.taken, drawn), np.append(draw.response, np.full(len(drawn), np.nan))
    remaining_draw = replace(draw, taken=rows, response=response, count=draw.count - len(drawn))
    return np.append(drawn, pick_least_known(remaining_draw))


def pick_least_known(draw: Draw) -> Ints:
    """Take, one by one, the row with the least known pairs of levels.

    A pair counts by what it explains so far; a cell of it is known by the rows it has for its size. The stop rule fails
    most often at cells of two knobs that few or no runs have seen.
    """
    free = draw.free
    pairs = list(combinations(range(len(draw.levels)), 2)) or [(0, 0)]
    # One number per cell: numbers are sorted a good deal faster than rows.
    cells = [
        np.unique(draw.codes[:, a] * draw.levels[b] + draw.codes[:, b], return_inverse=True)[1].reshape(-1)
        for a, b in pairs
    ]
    sizes = [np.bincount(cell) * (cell.max() + 1) / len(cell) for cell in cells]  # 1: as large as cells are on average
    counts = [np.bincount(cell[draw.taken], minlength=cell.max() + 1).astype(float) for cell in cells]
    rows, response = draw.known
    weights = [1 / len(pairs) + _explained(cell[rows], response) for cell in cells]
    chosen = []
    for _ in range(min(draw.count, len(free))):
        per_pair = zip(weights, counts, cells, sizes, strict=True)
        gain = np.sum([w * (size / (size + count))[cell[free]] for w, count, cell, size in per_pair], axis=0)
        pick = int(np.argmax(gain))
        for count, cell in zip(counts, cells, strict=True):
            count[cell[free[pick]]] += 1
        chosen.append(int(free[pick]))
        free = np.delete(free, pick)
    return np.array(chosen, dtype=np.int64)


def count_random(method: str, count: int, taken: int) -> int:
    """Return how many of `count` picked rows, the first ones, stand for all possible ones; the others were chosen.

    `taken` rows were picked before. Active sampling chooses none before there are as many as a stop needs. Methods that
    never look at a response spread over all settings, and the paper's are left as they are.
    """
    if method != "active":
        return count
    first = min(count, max(0, LEAST_TO_STOP - taken))
    return first + math.ceil(LHS_SHARE * (count - first))


def _explained(group: Ints, response: Floats) -> float:
    """Share of the variance that lies between groups, less what as many random groups would have (adjusted R2)."""
    counts = np.bincount(group)
    groups = int(np.count_nonzero(counts))
    if len(response) <= groups or np.ptp(response) == 0:
        return 0.0
    means = np.bincount(group, response) / np.maximum(counts, 1)
    within = float(((response - means[group]) ** 2).sum()) / (len(response) - groups)
    return max(0.0, 1 - within / float(np.var(response, ddof=1)))


SAMPLERS: dict[str, Sampler] = {
    "random": pick_random,
    "lhs": pick_lhs,
    "balanced": pick_balanced,
    "stratified": pick_stratified,
    "distribution_aware": pick_distribution_aware,
    "active": pick_active,
}
#: Methods that look at what was measured, so that every case gets configurations of its own.
RESPONSIVE = frozenset({"distribution_aware", "active", "narrowing"})
