"""Series of intervals that cannot be what happened: frozen ones, and those that end before their window does.

All of it is relative to the other runs of the case, since there is hardly a series that some DBMS does not produce: a
limit on its rate makes it constant, a full write buffer stops it until the end. So a series is damaged only where it is
an exception: at most half of the runs of its configuration, and of its case, are so.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.steadiness import PLENTY

#: False alarms per case, at most.
_ALARMS = 1e-3
#: Three repetitions at least, however rare coincidences are elsewhere.
_LEAST_REPEATS = 3
#: Runs by which it is judged how long rows of equal intervals usually are: those with the shortest ones.
_USUAL_SHARE = 0.75
#: A silence is at least so long: intervals, where few operations are usual in each, and share of the window.
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
class Shapes:
    """What the series of several runs look like; all are of shape (runs,), and all but the last three count intervals.

    `repeats` is the longest row of intervals that equal the one before in all figures, `starts` counts such rows,
    `chances` the intervals that could have begun one, `goes_on` those that could have made one longer, of which
    `longer` did; `silent` are the intervals at the end without an operation,
    `pause` the longest row of such intervals elsewhere.
    """

    intervals: Ints
    repeats: Ints
    starts: Ints
    chances: Ints
    goes_on: Ints
    longer: Ints
    silent: Ints
    pause: Ints
    end_s: Floats
    step_s: Floats  # median; NaN where there is one interval only
    usual: Floats  # operations in an interval that has some, median; NaN without any


def measure_shapes(series: Sequence[Series]) -> Shapes:
    """Return the shapes of at least one series, each of at least one interval.

    All are looked at together, since there may be tens of thousands, of a few intervals each.
    """
    t_s, figures = (np.concatenate([getattr(entry, name) for entry in series]) for name in ("t_s", "figures"))
    intervals = np.array([len(entry.t_s) for entry in series], np.int64)
    ends = np.cumsum(intervals)
    begins = ends - intervals
    is_first = np.zeros(len(t_s), bool)
    is_first[begins] = True
    busy = figures[:, 0] > 0
    unchanged = (figures[1:] == figures[:-1]) | (np.isnan(figures[1:]) & np.isnan(figures[:-1]))
    equal = np.concatenate([[False], unchanged.all(axis=1)]) & busy & ~is_first
    follows = np.concatenate([[False], equal[:-1]]) & ~is_first
    silent = _row_so_far(~busy, is_first)
    at_end = silent[ends - 1]
    is_end = np.arange(len(t_s)) >= np.repeat(ends - at_end, intervals)

    def count(marked: Bools) -> Ints:
        return np.asarray(np.add.reduceat(marked, begins, dtype=np.int64))

    return Shapes(
        intervals=intervals,
        repeats=np.maximum.reduceat(_row_so_far(equal, is_first), begins),
        starts=count(equal & ~follows),
        chances=count(busy & ~is_first & ~follows),
        goes_on=count(busy & follows),
        longer=count(equal & follows),
        silent=at_end,
        pause=np.maximum.reduceat(np.where(is_end, 0, silent), begins),
        end_s=t_s[ends - 1],
        step_s=_median_steps(t_s, intervals, is_first),
        usual=_medians(np.where(busy, figures[:, 0], np.nan), intervals),
    )


def _row_so_far(marked: Bools, is_first: Bools) -> Ints:
    """Return for each interval how many marked ones end with it, in its own series."""
    index = np.arange(len(marked))
    before = np.where(marked, np.where(is_first, index - 1, -1), index)
    return np.asarray(index - np.maximum.accumulate(before), np.int64)


def _median_steps(t_s: Floats, intervals: Ints, is_first: Bools) -> Floats:
    steps = np.diff(t_s, prepend=np.nan)
    steps[is_first] = np.nan
    return _medians(steps, intervals)


def _medians(values: Floats, intervals: Ints) -> Floats:
    """Return the median of the known values of each series."""
    import pandas as pd

    return np.asarray(pd.Series(values).groupby(np.repeat(np.arange(len(intervals)), intervals)).median(), float)


def find_frozen(shapes: Shapes) -> Bools:
    """Return which runs of a case repeat an interval, in all its figures, more often than chance does; shape (runs,).

    Chance is learnt from the case itself: how often an interval equals the one before, where that one did not equal its
    own predecessor (so that a frozen run counts once); and how often such a row goes on, in the three quarters of the
    runs with the shortest rows (where a rate is limited, more often). Fewer than one in a thousand cases would have
    such a row by chance. Counts of few operations coincide often, and then only long rows tell anything.
    """
    begun = (shapes.starts.sum() + 1) / (shapes.chances.sum() + 1)
    usual = np.argsort(shapes.repeats, kind="stable")[: math.ceil(_USUAL_SHARE * len(shapes.repeats))]
    gone_on = shapes.longer[usual].sum() / (shapes.goes_on[usual].sum() + 1)
    share = max(begun, gone_on)
    needed = np.log(_ALARMS / max(int(shapes.intervals.sum()), 1)) / np.log(share) if share < 1 else np.inf
    frozen: Bools = shapes.repeats >= max(_LEAST_REPEATS, needed)
    return frozen


def find_silent(shapes: Shapes) -> Bools:
    """Return which runs of a case have no operation for a third of their intervals or more in a row; shape (runs,).

    Not where any run of the others pauses for more than half as long: pauses are what this system does.
    """
    longest = np.maximum(shapes.silent, shapes.pause)
    least = np.maximum(np.where(shapes.usual >= PLENTY, 1, _LEAST_SILENT), _SILENT_SHARE * shapes.intervals)
    silent: Bools = (least <= longest) & (longest < shapes.intervals)
    common = int(longest[~silent].max(initial=0))
    return silent & (longest > 2 * common)


def find_truncated(shapes: Shapes, window_s: Floats) -> Bools:
    """Return which runs of a case have no intervals at the end of their window; shape (runs,), seconds.

    A window that nobody knows (NaN) is as long as the series of the case usually are.
    """
    if not np.isfinite(shapes.step_s).any():
        return np.zeros(len(shapes.end_s), bool)
    window = np.where(np.isfinite(window_s), window_s, np.median(shapes.end_s))
    least = np.maximum(_MISSING_STEPS * np.nanmedian(shapes.step_s), _MISSING_SHARE * window)
    truncated: Bools = window - shapes.end_s > least
    return truncated


def find_exceptions(odd: Bools, configuration: Ints, least_runs: int) -> Bools:
    """Return which odd runs are exceptions: at most half of the runs of their configuration and of all are odd.

    All are of shape (runs,), the runs of one case. A configuration with fewer than `least_runs` says nothing.
    """
    codes = np.unique(configuration, return_inverse=True)[1]
    runs, odd_runs = np.bincount(codes), np.bincount(codes, odd.astype(float))
    exceptions: Bools = odd & (runs >= least_runs)[codes] & (2 * odd_runs <= runs)[codes] & (2 * odd.sum() <= len(odd))
    return exceptions
