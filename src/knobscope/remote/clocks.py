"""How far the clock of another machine is from ours, found as NTP does."""

import time
from collections.abc import Callable
from dataclasses import dataclass

_ROUND_TRIPS = 20


@dataclass(frozen=True)
class ClockOffset:
    """By how much another clock is ahead of ours, in nanoseconds, and by how much that may be wrong at most."""

    offset_ns: float
    error_ns: float


def compare_clocks(tell_time: Callable[[], int]) -> ClockOffset:
    """Return the offset of the clock that `tell_time` asks: nanoseconds since 1970.

    The answer was given between question and arrival, so that the offset is wrong by half of the round trip at most;
    of several round trips the quickest one counts.
    """
    trips = []
    for _ in range(_ROUND_TRIPS):
        sent_ns = time.time_ns()
        remote_ns = tell_time()
        arrived_ns = time.time_ns()
        trips.append((arrived_ns - sent_ns, remote_ns - sent_ns - (arrived_ns - sent_ns) / 2))
    round_trip_ns, offset = min(trips)
    return ClockOffset(offset, round_trip_ns / 2)
