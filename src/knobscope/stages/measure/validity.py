"""When a run counts: knobs in force, server alive, all intervals there, no frozen or copied series."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.tables import IntervalRow

#: So many intervals too few or too many mean that one is missing or doubled; clocks are read with less error.
_MISSING = 0.9
#: A window ends this much later than requested on a busy machine, and is watched from this much later on.
_LATE_SHARE, _LATE_S = 0.1, 0.1
#: One that is shorter than this share of what was requested has ended early.
_SHORTEST_SHARE = 0.75


class RunFailedError(Exception):
    """A run that does not count; `status` says of what kind, `log_tail` holds the words of server or client.

    `disturbance` says what seems to have ended it from outside, if anything does.
    """

    def __init__(self, status: str, reason: str, log_tail: str = "", disturbance: str | None = None) -> None:
        super().__init__(reason)
        self.status = status
        self.log_tail = log_tail
        self.disturbance = disturbance


def check_result(
    totals: Mapping[str, Any],
    intervals: Sequence[IntervalRow],
    expected_intervals: float,
    earlier: set[tuple[Any, ...]],
    max_failed_share: float,
    first_failure: str | None = None,
) -> None:
    """Raise RunFailedError unless the result is whole; `earlier` holds the series of the block's other runs.

    With more failed operations than `max_failed_share` (a share of all) something else was measured than was requested.
    """
    ok, failed = totals["ok"], totals["failed"]
    suffix = f"; the first: {first_failure}" if first_failure else ""
    if ok == 0:
        raise RunFailedError("failed_run", f"no operation succeeded, {failed} failed{suffix}")
    if failed > max_failed_share * (ok + failed):
        limit = f"more than {max_failed_share:.2%}"
        raise RunFailedError("failed_run", f"{failed} of {ok + failed} operations failed, {limit}{suffix}")
    if abs(len(intervals) - expected_intervals) >= _MISSING:  # a window that ends late has a part of one more
        raise RunFailedError("invalid", f"{len(intervals)} intervals instead of {expected_intervals:.3g}")
    if sum(row["ops"] for row in intervals) == 0:
        raise RunFailedError("invalid", "all intervals are empty")
    series = tuple((row["ops"], row["latency_p95_us"], row["latency_p99_us"]) for row in intervals)
    is_timed = any(row["latency_p95_us"] is not None for row in intervals)  # counts alone may be equal by chance
    if len(series) > 1 and is_timed and series in earlier:
        raise RunFailedError("invalid", "the same series as an earlier run, to the last digit")
    earlier.add(series)


def check_window(window_s: float, requested_s: float, longest_s: float) -> None:
    """Raise RunFailedError when a window lasted longer than requested, or much shorter.

    It lasts longer when the client or the whole machine stood still. Generators count their seconds in several ways, so
    only what lacks a quarter of them has ended early.
    `longest_s`: how late a window may end because of an operation that began in it.
    """
    if window_s > requested_s * (1 + _LATE_SHARE) + _LATE_S + longest_s:
        duration = f"the window lasted {window_s:.3g} s instead of {requested_s:.3g} s"
        raise RunFailedError("invalid", f"{duration}: the load generator or the machine stood still")
    if window_s < _SHORTEST_SHARE * requested_s:
        duration = f"the window lasted {window_s:.3g} s instead of {requested_s:.3g} s"
        raise RunFailedError("invalid", f"{duration}: the load generator ended early")


def check_watched(late_s: float, window_s: float) -> None:
    """Raise RunFailedError when the device was watched only from late in a window on: counts lack some.

    That is a disturbance: no knob decides when the watching begins, unless its value keeps the machine too busy for it.
    """
    if late_s > window_s * _LATE_SHARE + _LATE_S:
        duration = f"the device was watched from {late_s:.2g} s after the start of a window of {window_s:.3g} s on"
        reason = f"{duration}: the machine is slow; a longer `warmup_s` leaves more time"
        raise RunFailedError("invalid", reason, disturbance="the machine was too slow to watch the device in time")


def check_data(checks: Sequence[Mapping[str, Any]]) -> None:
    """Raise RunFailedError when the data is not as it must be after the run; checks have name, holds, detail."""
    broken = [f"{check['name']}, {check['detail']}" for check in checks if not check["holds"]]
    if broken:
        raise RunFailedError("invalid", "the data is wrong after the run: " + "; ".join(broken))
