"""Sessions on another level: all runs of one are several times faster or slower than the same runs of the others."""

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints

#: Sessions that are so many times apart are on two levels ...
_TIMES_APART = 3.0
#: ... when each level is by so much narrower than their distance; where sessions differ by any amount, none stands out.
_NARROWER = 3.0


def judge_levels(log_throughput: Floats, configuration: Ints, group: Ints, groups: int) -> tuple[Floats, Bools]:
    """Return the level of each group against the usual one (natural-log ratio, NaN: not known), and who is on another.

    The runs are of shape (runs,), the results of shape (groups,). What the configurations do is taken out before: the
    median of each over all groups, which one group on another level does not move where there are three. Where two
    levels have equally many groups nobody can say which is the usual one: all are on another level than the others.
    """
    import pandas as pd

    frame = pd.DataFrame({"value": log_throughput, "configuration": configuration, "group": group}).dropna()
    beside = frame["value"] - frame.groupby("configuration")["value"].transform("median")
    levels = beside.groupby(frame["group"]).median().reindex(range(groups)).to_numpy(float)
    is_shifted = _find_other_level(levels)
    usual = np.isfinite(levels) & ~is_shifted
    return levels - np.array([_reference(levels, usual, index) for index in range(groups)]), is_shifted


def _reference(levels: Floats, usual: Bools, group: int) -> float:
    """Return the median of the usual levels, or of all others where none is usual; NaN where the group is alone."""
    chosen = usual.copy() if usual.any() else np.isfinite(levels)
    chosen[group] = False
    return float(np.median(levels[chosen])) if chosen.any() else np.nan


def _find_other_level(levels: Floats) -> Bools:
    """Return which groups are on another level than most: all, where two levels have equally many; shape (groups,).

    The widest gap between neighbouring levels parts them. It has to be threefold, and three times as wide as each of
    the two sides, so that a machine whose sessions differ by any amount is not said to have a usual level.
    """
    is_shifted = np.zeros(len(levels), bool)
    measured = np.flatnonzero(np.isfinite(levels))
    order = measured[np.argsort(levels[measured], kind="stable")]
    gaps = np.diff(levels[order])
    if not len(gaps):
        return is_shifted
    at = int(np.argmax(gaps)) + 1
    sides = [order[:at], order[at:]]
    if gaps[at - 1] <= np.log(_TIMES_APART) or max(np.ptp(levels[side]) for side in sides) * _NARROWER > gaps[at - 1]:
        return is_shifted
    for side, opposite in (sides, sides[::-1]):
        is_shifted[side] = len(side) <= len(opposite)
    return is_shifted
