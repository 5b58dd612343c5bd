"""Ranks of values, and the slope that most pairs of them agree on.

`scipy.stats` has both. Importing it takes half a second of processor time, more than the rest of most stages, so
nothing here does; its distributions are functions of `scipy.special`, too.
"""

import math

import numpy as np

from knobscope.statistics.arrays import Floats


def rank_values(values: Floats) -> Floats:
    """Return the ranks of values from 1 on, shape (n,); equal values share the mean of their ranks."""
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = last - (counts - 1) / 2
    return shared[code]


def correlate_ranks(values: Floats, others: Floats) -> float:
    """Return Spearman's correlation of two arrays (n,); NaN where one of them is flat."""
    if np.ptp(values) == 0 or np.ptp(others) == 0:
        return math.nan
    return float(np.corrcoef(rank_values(values), rank_values(others))[0, 1])


def median_slope(values: Floats) -> float:
    """Return the median of the slopes between all pairs of values (n,), per step; at least two values.

    Theil and Sen's estimate (Sen, Journal of the American Statistical Association 63, 1968).
    """
    earlier, later = np.triu_indices(len(values), 1)
    return float(np.median((values[later] - values[earlier]) / (later - earlier)))


def normal_scores(values: Floats) -> Floats:
    """Return the normal quantiles of the ranks (Blom 1958), shape (n,), ties sharing the mean rank; mean 0."""
    from scipy.special import ndtri

    scores: Floats = ndtri((rank_values(values) - 0.375) / (len(values) + 0.25))
    return scores - scores.mean() if len(scores) else scores


def is_larger(values: Floats, others: Floats, level: float) -> bool:
    """Whether values (n,) are larger than others (m,) beyond chance: Mann and Whitney's test, one-sided.

    By the normal approximation, corrected for ties and continuity; never without values on either side.
    """
    from scipy.special import ndtr

    n, m = len(values), len(others)
    if n == 0 or m == 0:
        return False
    together = np.concatenate([values, others])
    ties = np.unique(together, return_counts=True)[1]
    variance = n * m / 12 * ((n + m + 1) - (ties**3 - ties).sum() / ((n + m) * (n + m - 1)))
    excess = rank_values(together)[:n].sum() - n * (n + 1) / 2 - n * m / 2 - 0.5
    return bool(variance > 0 and ndtr(-excess / np.sqrt(variance)) <= level)
