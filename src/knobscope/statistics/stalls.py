"""Runs in which the system stalled: many times slower than everything else says they should have been."""

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints

#: A run is stalled when it is so many times slower than the median of its kind ...
_TIMES_SLOWER = 3.0
#: ... and so many robust standard deviations below it: where noise is that large, it is no stall.
_DEVIATIONS = 6.0
#: Of two runs nobody can say which one stalled.
_LEAST_RUNS = 3
#: Median polish has settled after a few rounds (Tukey, Exploratory Data Analysis, 1977, chapter 11).
_ROUNDS = 5
_MAD_TO_SD = 1.4826


def find_stalls(log_throughput: Floats, configuration: Ints, group: Ints) -> Bools:
    """Return which runs stalled: shape (runs,), as all arguments."""
    return np.isfinite(measure_stalls(log_throughput, configuration, group))


def measure_stalls(log_throughput: Floats, configuration: Ints, group: Ints) -> Floats:
    """Return how many times slower stalled runs were than the medians of their configuration and group suggest.

    Both medians are those of a median polish. All are of shape (runs,); NaN: no stall, as of a run that failed (NaN). A
    configuration that is slow in most of its runs is slow, not stalled.
    """
    is_measured = np.isfinite(log_throughput)
    residual = np.where(is_measured, log_throughput, np.nan)
    for _ in range(_ROUNDS):
        for label in (group, configuration):
            residual = residual - _group_medians(residual, label)[label]
    spread = _MAD_TO_SD * float(np.nanmedian(np.abs(residual))) if is_measured.any() else 0.0
    runs = np.bincount(configuration[is_measured], minlength=int(configuration.max(initial=-1)) + 1)
    is_far = residual < -max(np.log(_TIMES_SLOWER), _DEVIATIONS * spread)
    return np.where(is_measured & is_far & (runs[configuration] >= _LEAST_RUNS), np.exp(-residual), np.nan)


def _group_medians(values: Floats, group: Ints) -> Floats:
    """Median of the known values per group, shape (groups,); NaN where none is known."""
    import pandas as pd

    medians = pd.Series(values).groupby(group).median()
    return np.asarray(medians.reindex(range(int(group.max(initial=-1)) + 1)).to_numpy(float))
