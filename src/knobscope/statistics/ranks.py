"""Ranks of values, and the slope that most pairs of them agree on.

`scipy.stats` has both. Importing it takes half a second of processor time, more than the rest of most stages, so
nothing here does; its distributions are functions of `scipy.special`, too.
"""

import numpy as np

from knobscope.statistics.arrays import Floats

__all__ = ["median_slope", "normal_scores", "rank_values"]


def rank_values(values: Floats) -> Floats:
    """Return the ranks of values from 1 on, shape (n,); equal values share the mean of their ranks."""
    _, code, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = last - (counts - 1) / 2
    return shared[code]


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
