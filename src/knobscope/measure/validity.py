"""When a run counts: knobs in force, server alive, all intervals there, no frozen or copied series."""

from collections.abc import Sequence
from typing import Any

__all__ = ["RunFailedError", "check_data", "check_result"]

#: Failed operations above this share mean that something else was measured than was asked for.
_FAILED_SHARE = 0.001


class RunFailedError(Exception):
    """A run that does not count; `status` says of what kind, `log_tail` holds the words of server or client."""

    def __init__(self, status: str, reason: str, log_tail: str = "") -> None:
        super().__init__(reason)
        self.status = status
        self.log_tail = log_tail


def check_result(
    totals: dict[str, Any],
    intervals: Sequence[dict[str, Any]],
    expected_intervals: int,
    earlier: set[tuple[Any, ...]],
) -> None:
    """Raise RunFailedError unless the result is whole; `earlier` holds the series of the block's other runs."""
    ok, failed = totals["ok"], totals["failed"]
    if ok == 0:
        raise RunFailedError("failed_run", f"no operation succeeded, {failed} failed")
    if failed > _FAILED_SHARE * (ok + failed):
        raise RunFailedError("failed_run", f"{failed} of {ok + failed} operations failed")
    if len(intervals) != expected_intervals:
        raise RunFailedError("invalid", f"{len(intervals)} intervals instead of {expected_intervals}")
    if sum(row["ops"] for row in intervals) == 0:
        raise RunFailedError("invalid", "all intervals are empty")
    series = tuple((row["ops"], row["latency_p95_us"], row["latency_p99_us"]) for row in intervals)
    if len(series) > 1 and series in earlier:
        raise RunFailedError("invalid", "the same series as an earlier run, to the last digit")
    earlier.add(series)


def check_data(checks: Sequence[dict[str, Any]]) -> None:
    """Raise RunFailedError when the data is not as it must be after the run; checks have name, holds, detail."""
    broken = [f"{check['name']}, {check['detail']}" for check in checks if not check["holds"]]
    if broken:
        raise RunFailedError("invalid", "the data is wrong after the run: " + "; ".join(broken))
