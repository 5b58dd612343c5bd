"""Whether the throughput of a run was steady in its window, or still rose or fell: a trend test over the intervals.

How much it changed is Theil and Sen's slope (Sen, Journal of the American Statistical Association 63, 1968), the median
of the slopes between all pairs, so that one stall changes little. Whether that could be chance is asked of the ranks
(as Spearman's correlation with time does), which a stall cannot dominate either.

The intervals of a run are not independent: what is in a cache or a queue in one second is there in the next. A test
that takes them for independent (Mann and Kendall's, say) finds trends where there are none. The variance of the slope
is therefore that of an autoregressive process of first order, with degrees of freedom after Satterthwaite (Biometrics
Bulletin 2, 1946). Its autocorrelation is taken from the residuals, corrected for what fitting a line hides of it, at
the upper end of its 95 % interval: ten intervals hardly tell an autocorrelation of .2 from one of .6, and the smaller
one would promise too much. Methods that look for the end of the warm-up in a long series, such as MSER-5 (White,
Simulation 69, 1997), want many more intervals than a window has.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.ranks import median_slope, rank_values

#: With fewer, no order of the values is unlikely enough.
MIN_INTERVALS = 6
_ALPHA = 0.01
#: With so many operations in a usual interval, one without any is not chance.
PLENTY = 20
#: A window is uneven when one half of it is so many times faster than the other.
UNEVEN = 2.0
#: A smaller change over the window is no reason for a longer warm-up.
_MIN_CHANGE = 0.1
#: Standard errors of the autocorrelation (each 1 / sqrt(intervals)) that are added to it: 95 %, one-sided.
_ERRORS = 1.645


@dataclass(frozen=True)
class Trend:
    """How throughput changed over a window; `change` is a share of its median, `p_value` that of no trend at all."""

    change: float
    p_value: float

    @property
    def is_steady(self) -> bool:
        """Whether the change is small, or could be chance."""
        return abs(self.change) < _MIN_CHANGE or self.p_value > _ALPHA


def find_trend(operations: Sequence[int]) -> Trend | None:
    """Return the trend of operations per interval, None where there are too few intervals to tell."""
    count, centre = len(operations), float(np.median(operations)) if operations else 0.0
    if count < MIN_INTERVALS or centre == 0:
        return None
    values = np.asarray(operations, float)
    return Trend(median_slope(values) * (count - 1) / centre, _trend_probability(values))


def summarise_window(ends_s: Sequence[float], operations: Sequence[int]) -> dict[str, float | bool | None]:
    """Return the columns of table `runs` that say how steady a window was, from the ends and operations of intervals.

    Those that so few intervals or operations cannot tell are missing.
    """
    columns: dict[str, float | bool | None] = {}
    if trend := find_trend(operations):
        columns |= {
            "window_change": trend.change,
            "window_trend_p": trend.p_value,
            "window_steady": trend.is_steady,
        }
    busy = [count for count in operations if count > 0]
    if len(operations) < 2 or not busy or np.median(busy) < PLENTY:
        return columns
    pause_s = longest_s = begin = 0.0
    for end, count in zip(ends_s, operations, strict=True):
        pause_s = 0.0 if count else pause_s + end - begin
        longest_s, begin = max(longest_s, pause_s), end
    halfway = np.interp(len(operations) / 2, range(len(operations) + 1), np.cumsum([0, *operations]))
    first, total = float(halfway), float(sum(operations))
    return {**columns, "window_pause_s": longest_s, "window_halves": (total - first) / first if first else None}


@dataclass(frozen=True)
class _Line:
    """What a straight line through so many intervals does to an autoregressive process.

    `residual` (n, n) turns scores into residuals; `expected` is the autocorrelation of the residuals to be expected
    where that of the process is `true`.
    """

    time: Floats
    residual: Floats
    lags: Floats
    true: Floats
    expected: Floats


@lru_cache(maxsize=16)
def _line(count: int) -> _Line:
    time = np.arange(count, dtype=np.float64) - (count - 1) / 2
    columns = np.column_stack([np.ones(count), time])
    residual = np.eye(count) - columns @ np.linalg.pinv(columns)
    lags = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(float)
    true = np.linspace(0, 0.98, 50)
    covariances = [residual @ rho**lags @ residual for rho in true]
    expected = [float(np.trace(covariance, offset=1) / np.trace(covariance)) for covariance in covariances]
    return _Line(time, residual, lags, true, np.array(expected))


def _trend_probability(values: Floats) -> float:
    """Return the two-sided p value of the slope of the values' ranks; 1 where all are equal."""
    from scipy.special import stdtr

    line, count = _line(len(values)), len(values)
    ranks = rank_values(values)
    residuals = line.residual @ ranks
    squares, slope = float(residuals @ residuals), float(line.time @ ranks)
    if squares < 1e-12:
        return 1.0 if abs(slope) < 1e-9 else 0.0
    observed = float(residuals[1:] @ residuals[:-1]) / squares + _ERRORS / np.sqrt(count)
    correlation = np.interp(observed, line.expected, line.true) ** line.lags
    filtered = line.residual @ correlation
    trace = float(np.trace(filtered))
    degrees = trace**2 / float(np.sum(filtered * filtered.T))
    error = np.sqrt(squares / trace * float(line.time @ correlation @ line.time))
    return float(2 * stdtr(degrees, -abs(slope) / error))
