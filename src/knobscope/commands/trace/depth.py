"""How many requests are in flight: time spent at each depth, and mean depth per interval, of a whole trace."""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

#: Depth is exact below, one bucket from there on, as on the kernel side.
DEPTHS = 1024
_PART = 1 << 14  # requests that are sorted together: so few that they stay in the cache

Integers = NDArray[np.int64]


@dataclass(frozen=True)
class Depth:
    """`times`: ns at each depth from 0 to DEPTHS; `means`: mean depth between the edges that were asked for."""

    times: Integers
    means: NDArray[np.float64]


def measure_depth(starts: Integers, ends: Integers, span: tuple[int, int], edges: Integers) -> Depth:
    """Return the depth over the time of `span`; `starts` ascend, a request is in flight from its start to its end (ns).

    `edges` ascend from the begin of the span to its end. Works on parts of the trace, with what is in flight from one
    part to the next, so that it needs no more memory for a long one.
    """
    times = np.zeros(DEPTHS + 1, np.int64)
    areas = np.zeros(len(edges))
    begin, depth, area = span[0], 0, 0.0
    pending = np.zeros(0, np.int64)
    for first in range(0, max(len(starts), 1), _PART):
        last = first + _PART
        until = int(starts[last]) if last < len(starts) else span[1]
        pending = np.concatenate([pending, ends[first:last]])
        is_over = pending <= until
        # The lowest bit tells starts from ends and puts an end before a start at the same moment.
        moments = np.sort(np.concatenate([starts[first:last] * 2 + 1, pending[is_over] * 2]))
        pending = pending[~is_over]
        depths = depth + np.concatenate([[0], np.cumsum((moments & 1) * 2 - 1)])
        points = np.concatenate([[begin], moments >> 1, [until]])
        spent = np.diff(points)
        real = spent > 0
        times += np.bincount(np.minimum(depths[real], DEPTHS), spent[real], DEPTHS + 1).astype(np.int64)
        grown = area + np.concatenate([[0.0], np.cumsum(depths * spent)])
        inside = (edges > begin) & (edges <= until)
        areas[inside] = np.interp(edges[inside], points, grown)
        begin, depth, area = until, int(depths[-1]), float(grown[-1])
    return Depth(times, np.diff(areas) / np.maximum(np.diff(edges), 1))
