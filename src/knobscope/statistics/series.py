"""Series of intervals that cannot be what happened: frozen ones, and those that end before their window does.

All of it is relative to the other runs of the case, since there is hardly a series that some DBMS does not produce: a
limit on its rate makes it constant, a full write buffer stops it until the end. So a series is damaged only where it is
an exception: at most half of the runs of its configuration, and of its case, are so.
"""

import math
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints

__all__ = ["Series", "Shape", "describe_series", "find_exceptions", "find_frozen", "find_silent", "find_truncated"]

#: False alarms per case, at most.
_ALARMS = 1e-3
#: Three repetitions at least, however rare coincidences are elsewhere.
_LEAST_REPEATS = 3
#: Runs by which it is judged how long rows of equal intervals usually are: those with the shortest ones.
_USUAL_SHARE = 0.75
#: A silent end is at least so long: intervals, and share of the window.
_LEAST_SILENT = 3
_SILENT_SHARE = 1 / 3
#: Tools differ in where they begin to count and leave out a part of an interval; more than this is missing.
_MISSING_STEPS = 2.5
_MISSING_SHARE = 0.1


@dataclass(frozen=True)
class Series:
    """The intervals of one run in their order: `t_s` (intervals,), and `figures` (intervals, k), operations first.

    Figures that are not known are NaN.
    """

    t_s: Floats
    figures: Floats


@dataclass(frozen=True)
class Shape:
    """What a series looks like: counts of intervals.

    `repeats` is the longest row of intervals that equal the one before in all figures, `starts` counts such rows,
    `chances` the intervals that could have begun one, `goes_on` those that could have made one longer, of which
    `longer` did; `silent` are the intervals at the end without an operation,
    `pause` the longest row of such intervals elsewhere.
    """

    intervals: int
    repeats: int
    starts: int
    chances: int
    goes_on: int
    longer: int
    silent: int
    pause: int
    end_s: float
    step_s: float  # NaN where there is one interval only


def describe_series(series: Series) -> Shape:
    """Return the shape of a series that has at least one interval."""
    figures, busy = series.figures, series.figures[:, 0] > 0
    same = (figures[1:] == figures[:-1]) | (np.isnan(figures[1:]) & np.isnan(figures[:-1]))
    equal = same.all(axis=1) & busy[1:]
    follows = np.concatenate([[False], equal[:-1]])
    silent = _rows(~busy)
    at_end = silent[-1] if len(silent) and not busy[-1] else 0
    return Shape(
        intervals=len(busy),
        repeats=int(max(_rows(equal), default=0)),
        starts=int((equal & ~follows).sum()),
        chances=int((busy[1:] & ~follows).sum()),
        goes_on=int((busy[1:] & follows).sum()),
        longer=int((equal & follows).sum()),
        silent=int(at_end),
        pause=int(max(silent[:-1] if at_end else silent, default=0)),
        end_s=float(series.t_s[-1]),
        step_s=float(np.median(np.diff(series.t_s))) if len(busy) > 1 else np.nan,
    )


def _rows(marked: Bools) -> list[int]:
    """Return the lengths of all rows of marked elements, in their order."""
    edges = np.flatnonzero(np.diff(np.concatenate([[0], marked.astype(np.int8), [0]])))
    return list(edges[1::2] - edges[::2])


def find_frozen(shapes: list[Shape]) -> Bools:
    """Return which runs of a case repeat an interval, in all its figures, more often than chance does; shape (runs,).

    Chance is learnt from the case itself: how often an interval equals the one before, where that one did not equal its
    own predecessor (so that a frozen run counts once); and how often such a row goes on, in the three quarters of the
    runs with the shortest rows (where a rate is limited, more often). Fewer than one in a thousand cases would have
    such a row by chance. Counts of few operations coincide often, and then only long rows tell anything.
    """
    begun = (sum(shape.starts for shape in shapes) + 1) / (sum(shape.chances for shape in shapes) + 1)
    usual = sorted(shapes, key=lambda shape: shape.repeats)[: math.ceil(_USUAL_SHARE * len(shapes))]
    gone_on = sum(shape.longer for shape in usual) / (sum(shape.goes_on for shape in usual) + 1)
    share = max(begun, gone_on)
    intervals = sum(shape.intervals for shape in shapes)
    needed = np.log(_ALARMS / max(intervals, 1)) / np.log(share) if share < 1 else np.inf
    return np.array([shape.repeats >= max(_LEAST_REPEATS, needed) for shape in shapes], bool)


def find_silent(shapes: list[Shape]) -> Bools:
    """Return which runs of a case end without an operation for a third of their intervals or more; shape (runs,).

    Not where any run of the case pauses elsewhere for half as long: pauses are what this system does.
    """
    pause = max((shape.pause for shape in shapes), default=0)
    least = [max(_LEAST_SILENT, _SILENT_SHARE * shape.intervals, 2 * pause + 1) for shape in shapes]
    return np.array(
        [least_one <= shape.silent < shape.intervals for shape, least_one in zip(shapes, least, strict=True)], bool
    )


def find_truncated(shapes: list[Shape], window_s: Floats) -> Bools:
    """Return which runs of a case have no intervals at the end of their window; shape (runs,), seconds.

    A window that nobody knows (NaN) is as long as the series of the case usually are.
    """
    ends = np.array([shape.end_s for shape in shapes])
    steps = np.array([shape.step_s for shape in shapes])
    if not np.isfinite(steps).any():
        return np.zeros(len(shapes), bool)
    window = np.where(np.isfinite(window_s), window_s, np.median(ends))
    truncated: Bools = window - ends > np.maximum(_MISSING_STEPS * np.nanmedian(steps), _MISSING_SHARE * window)
    return truncated


def find_exceptions(odd: Bools, configuration: Ints, least_runs: int) -> Bools:
    """Return which odd runs are exceptions: at most half of the runs of their configuration and of all are odd.

    All are of shape (runs,), the runs of one case. A configuration with fewer than `least_runs` says nothing.
    """
    codes = np.unique(configuration, return_inverse=True)[1]
    runs, odd_runs = np.bincount(codes), np.bincount(codes, odd.astype(float))
    exceptions: Bools = odd & (runs >= least_runs)[codes] & (2 * odd_runs <= runs)[codes] & (2 * odd.sum() <= len(odd))
    return exceptions
