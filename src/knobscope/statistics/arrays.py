"""The kinds of arrays that the statistics take and give, and the means of groups of their rows."""

import numpy as np
from numpy.typing import NDArray

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def average_groups(values: Floats, groups: Ints) -> Floats:
    """Return an array with the mean over the group of its row in place of each value; `groups` has a code per row."""
    counts = np.maximum(np.bincount(groups), 1)
    averages = np.empty(values.shape)
    for column in np.ndindex(values.shape[1:]):
        averages[:, *column] = (np.bincount(groups, values[:, *column]) / counts)[groups]
    return averages
