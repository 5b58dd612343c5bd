"""Knees and turning points as their authors find them, to compare with: no noise, no cliffs, a linear axis only.

Hui et al., "On the Feasibility and Benefits of Extensive Evaluation" (SIGMOD 2024), Algorithms 2 and 3, in the form of
the code that they published: `detect_turning_coef` and `detect_knee` in anova_analysis/run_all_stat-split.py of
https://github.com/huiyujie/ExtensiveEval. docs/evidence/statistics.md says where
`knobscope.statistics.points` departs from it.
"""

import math
from collections.abc import Sequence

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.points import MONOTONE, TURN, Point, locate_knee, turn_ratio
from knobscope.statistics.ranks import correlate_ranks


def find_published_points(levels: Sequence[float], effects: Sequence[float]) -> list[Point]:
    """Return the knee or turning point of a curve, if it has one: `effects` (any unit) at `levels`, in rising order.

    The lowest level is what the others' coefficients are compared with there, and no part of the curve.
    """
    position, height = np.asarray(levels[1:], float), np.asarray(effects[1:], float)
    if len(position) < 3:
        return []
    overall = correlate_ranks(position, height)
    if abs(overall) >= MONOTONE:
        return _find_knee(position, height, rising=overall > 0)
    splits = range(1, len(position) - 1)
    changes = [
        abs(correlate_ranks(position[: at + 1], height[: at + 1]) - correlate_ranks(position[at:], height[at:]))
        for at in splits
    ]
    valid_changes = [change for change in changes if not math.isnan(change)]
    if not valid_changes or max(valid_changes) <= TURN:
        return []
    at = splits[changes.index(max(valid_changes))]
    return [Point("turning", float(position[at]), turn_ratio(position, height, at))]


def _find_knee(position: Floats, height: Floats, *, rising: bool) -> list[Point]:
    at = locate_knee(position, height, rising=rising)
    if at is None:
        return []
    inside = 0 < at < len(position) - 1  # at an end there is no slope on one side
    return [Point("knee", float(position[at]), turn_ratio(position, height, at) if inside else math.nan)]
