"""Differences that each run shows by itself: mean over blocks with interval and p value."""

from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.statistics.regression import t_interval, t_probability

if TYPE_CHECKING:
    import pandas as pd

_LEAST_DEGREES = 2  # as for effects


def mean_over_units(differences: "pd.Series[float]", units: "pd.Series[str]") -> dict[str, Any]:
    """Return estimate, low, high and p_value of a difference that was measured in each run (Student's t).

    `units` say which runs belong together: those of a block have its data and the state of its device in common, so
    their mean is one measurement. With fewer than three of these there is an estimate and no interval: nothing tells
    the difference from noise.
    """
    values = differences.groupby(units).mean().dropna().to_numpy(float)
    degrees = len(values) - 1
    estimate = np.array([values.mean() if len(values) else np.nan])
    error = values.std(ddof=1) / np.sqrt(len(values)) if degrees >= _LEAST_DEGREES else np.nan
    errors = np.array([error])
    low, high = t_interval(estimate, errors, max(degrees, 1))
    p_value = t_probability(estimate, errors, max(degrees, 1))
    columns = {"estimate": estimate, "low": low, "high": high, "p_value": p_value}
    return {name: float(column[0]) for name, column in columns.items()}
