"""Which rows of a measured grid to look up next: the sampling methods of `knobscope replay`.

Balanced, stratified and distribution-aware sampling follow Hui et al. (SIGMOD 2024); active sampling is ours.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from knobscope.select.design import Floats, Ints, Settings

__all__ = ["SAMPLERS", "Draw"]


@dataclass(frozen=True)
class Draw:
    """One step of sampling: `count` more rows of the grid, given those taken so far and their responses."""

    grid: Settings
    taken: Ints
    response: Floats  # of the taken rows
    count: int
    rng: np.random.Generator

    @property
    def free(self) -> Ints:
        """Rows not taken yet, in random order."""
        return self.rng.permutation(np.setdiff1d(np.arange(len(self.grid)), self.taken))


def sample_random(draw: Draw) -> Ints:
    """Take rows uniformly at random."""
    return draw.free[: draw.count]


def sample_balanced(draw: Draw) -> Ints:
    """Take, one after the other, the row whose levels were taken least often so far."""
    grid, free = draw.grid, draw.free
    counts = [
        np.bincount(draw.grid.codes[draw.taken, j], minlength=len(levels)).astype(float) * len(levels)
        for j, levels in enumerate(grid.levels)
    ]
    chosen = []
    for _ in range(min(draw.count, len(free))):
        load = sum(count[grid.codes[free, j]] for j, count in enumerate(counts))
        pick = int(np.argmin(load))
        for j, count in enumerate(counts):
            count[grid.codes[free[pick], j]] += len(grid.levels[j])
        chosen.append(int(free[pick]))
        free = np.delete(free, pick)
    return np.array(chosen, dtype=np.int64)


def sample_stratified(draw: Draw) -> Ints:
    """Take equally many rows per level of one factor; the factor with the rarest level among the taken rows."""
    grid, free = draw.grid, draw.free
    rarest = [
        np.bincount(grid.codes[draw.taken, j], minlength=len(levels)).min() * len(levels)
        for j, levels in enumerate(grid.levels)
    ]
    stratum = grid.codes[free, int(np.argmin(rarest))]
    order = np.argsort(stratum, kind="stable")
    place_in_stratum = np.arange(len(free)) - np.searchsorted(stratum[order], stratum[order])
    return free[order[np.argsort(place_in_stratum, kind="stable")]][: draw.count]


def sample_lhs(draw: Draw) -> Ints:
    """Take the free rows nearest to a Latin hypercube of `count` points over the levels."""
    places = _unit_places(draw.grid)
    cuts = [draw.rng.permutation(draw.count) for _ in draw.grid.factors]
    points = (np.column_stack(cuts) + draw.rng.random((draw.count, len(cuts)))) / draw.count
    free, chosen = draw.free, []
    for point in points[: len(free)]:
        pick = int(np.argmin(((places[free] - point) ** 2).sum(axis=1)))
        chosen.append(int(free[pick]))
        free = np.delete(free, pick)
    return np.array(chosen, dtype=np.int64)


def sample_distribution_aware(draw: Draw) -> Ints:
    """Take rows with a probability in proportion to how much the response varies among their nearest taken rows."""
    from scipy.spatial import KDTree

    if len(draw.taken) < 3:
        return sample_random(draw)
    places, free = _unit_places(draw.grid), draw.free
    neighbours = min(2 ** len(draw.grid.factors), 16, len(draw.taken))
    _, near = KDTree(places[draw.taken]).query(places[free], k=neighbours)
    points, heights = places[draw.taken][near], draw.response[near]
    distance = np.sqrt(((points[:, :, None, :] - points[:, None, :, :]) ** 2).sum(axis=3))
    rise = np.abs(heights[:, :, None] - heights[:, None, :])
    slope = np.divide(rise, distance, out=np.zeros_like(rise), where=distance > 0).mean(axis=(1, 2))
    if not slope.any():
        return sample_random(draw)
    weight = slope + 1e-6 * slope.max()
    return draw.rng.choice(free, size=min(draw.count, len(free)), replace=False, p=weight / weight.sum())


def sample_active(draw: Draw) -> Ints:
    """Take, one by one, the row with the least known pairs of levels; a pair counts by what it explains so far.

    The stop rule fails most often at cells of two factors that few or no runs have seen: this looks there first, and
    longest where cells already differ.
    """
    grid, free = draw.grid, draw.free
    pairs = list(combinations(range(len(grid.factors)), 2)) or [(0, 0)]
    cells = [np.unique(grid.codes[:, pair], axis=0, return_inverse=True)[1].reshape(-1) for pair in pairs]
    counts = [np.bincount(cell[draw.taken], minlength=cell.max() + 1).astype(float) for cell in cells]
    weights = [1 / len(pairs) + _explained(cell[draw.taken], draw.response) for cell in cells]
    chosen = []
    for _ in range(min(draw.count, len(free))):
        known = zip(weights, counts, cells, strict=True)
        gain = np.sum([weight / (1 + count[cell[free]]) for weight, count, cell in known], axis=0)
        pick = int(np.argmax(gain))
        for count, cell in zip(counts, cells, strict=True):
            count[cell[free[pick]]] += 1
        chosen.append(int(free[pick]))
        free = np.delete(free, pick)
    return np.array(chosen, dtype=np.int64)


def _explained(group: Ints, response: Floats) -> float:
    """Share of the variance that lies between groups, less what as many random groups would have (adjusted R2)."""
    groups = len(np.unique(group))
    if len(response) <= groups or np.ptp(response) == 0:
        return 0.0
    counts = np.bincount(group)
    means = np.bincount(group, response) / np.maximum(counts, 1)
    within = float(((response - means[group]) ** 2).sum()) / (len(response) - groups)
    return max(0.0, 1 - within / float(np.var(response, ddof=1)))


def _unit_places(grid: Settings) -> Floats:
    """Levels at the middle of equal parts of 0..1, in their order: a row per row of the grid."""
    return np.asarray((grid.codes + 0.5) / np.array([len(levels) for levels in grid.levels]))


SAMPLERS: dict[str, Callable[[Draw], Ints]] = {
    "random": sample_random,
    "lhs": sample_lhs,
    "balanced": sample_balanced,
    "stratified": sample_stratified,
    "distribution_aware": sample_distribution_aware,
    "active": sample_active,
}
