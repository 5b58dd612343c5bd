"""Whether the throughput of a run was steady in its window, or still rose or fell: a trend test over the intervals.

Mann-Kendall's test (Mann, Econometrica 13, 1945; Kendall, Rank Correlation Methods, 1975; with the correction for ties)
looks at the order of values only, so that one stall makes no trend. How much it is, is Theil and Sen's slope (Sen,
Journal of the American Statistical Association 63, 1968), the median of the slopes between all pairs. Methods that
look for the end of the warm-up in a long series, such as MSER-5 (White, Simulation 69, 1997), want many more intervals
than a window has.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist, median

__all__ = ["MIN_INTERVALS", "Trend", "find_trend"]

#: With fewer, no order of the values is unlikely enough.
MIN_INTERVALS = 6
_ALPHA = 0.01
#: A smaller change over the window is no reason for a longer warm-up.
_MIN_CHANGE = 0.1


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
    count, centre = len(operations), median(operations) if operations else 0
    if count < MIN_INTERVALS or centre == 0:
        return None
    pairs = list(combinations(enumerate(operations), 2))
    slope = median((later - earlier) / (j - i) for (i, earlier), (j, later) in pairs)
    score = sum((later > earlier) - (later < earlier) for (_, earlier), (_, later) in pairs)
    ties = sum(_spread(size) for size in Counter(operations).values())
    variance = (_spread(count) - ties) / 18
    z = max(abs(score) - 1, 0) / math.sqrt(variance) if variance else 0.0
    return Trend(slope * (count - 1) / centre, 2 * (1 - NormalDist().cdf(z)))


def _spread(count: int) -> int:
    return count * (count - 1) * (2 * count + 5)
