"""Experiments that go on until they give an answer: how often one looks, and how sure an interval then has to be."""

from collections.abc import Sequence
from functools import cache

import numpy as np

from knobscope.statistics.arrays import Floats

#: How often an answer is looked for, as many measurements apart. An interval of 95 % that is looked at three times has
#: to be one of 97.8 % each time (Pocock 1977, Biometrika 64, table 1).
LOOKS, SIGNIFICANCE = 3, 0.0221
#: A tenth of all settings escapes 30 random runs in one of twenty cases: with fewer, nothing is certain enough to stop.
LEAST_TO_STOP = 30
#: Points between the least z value that counts and the bound of a look. With twice as many, bounds change by 1e-4.
_POINTS, _LEAST_Z = 400, -6.0


def spend(chance: float, sizes: Sequence[int]) -> float:
    """Return the z value that is needed at the last of some looks, so that a lucky one has a chance over all together.

    `sizes` are the independent observations at each look, however many follow. By size n a share n / (n + the first
    size) of the chance is spent (alpha spending: Lan and DeMets, Biometrika 70, 1983). Looks share observations, so one
    that follows soon after another costs little: their z values have a correlation of the root of the sizes' ratio, and
    the chance to be lucky at this look and at none before follows by numerical integration (Armitage, McPherson and
    Rowe, Journal of the Royal Statistical Society A 132, 1969).
    """
    return _bound(chance, tuple(sorted(set(sizes))))[0]


@cache
def _bound(chance: float, sizes: tuple[int, ...]) -> tuple[float, Floats, Floats]:
    """Return the bound at the last look, and the z values below it with the probability of being there at all looks."""
    from scipy.optimize import brentq
    from scipy.special import ndtr, ndtri

    if len(sizes) == 1:
        bound = -float(ndtri(chance / 2))
        points = np.linspace(_LEAST_Z, bound, _POINTS)
        return bound, points, _mass(np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi), points)
    *_, before, size = sizes
    _, earlier, mass = _bound(chance, sizes[:-1])
    spent = chance * (size / (size + sizes[0]) - before / (before + sizes[0]))
    mean, spread = np.sqrt(before / size) * earlier, np.sqrt(1 - before / size)
    bound = float(brentq(lambda bound: mass @ ndtr((mean - bound) / spread) - spent, _LEAST_Z, -_LEAST_Z))
    points = np.linspace(_LEAST_Z, bound, _POINTS)
    density = np.exp(-(((points[:, None] - mean) / spread) ** 2) / 2) @ mass / (spread * np.sqrt(2 * np.pi))
    return bound, points, _mass(density, points)


def _mass(density: Floats, points: Floats) -> Floats:
    """Return the weight of each point in the trapezoidal rule, times the density there."""
    weights = np.full(len(points), points[1] - points[0])
    weights[[0, -1]] /= 2
    return np.asarray(density * weights)
