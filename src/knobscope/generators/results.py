"""The figures of a finished run, as the client wrote them."""

import csv
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

#: Files that the client leaves in its `out`.
SUMMARY, INTERVALS, SESSIONS = "summary.json", "intervals.csv", "sessions.csv"
#: End of an operation that was under way when the client wrote its results.
_UNDER_WAY = (1 << 63) - 1


@dataclass(frozen=True)
class Check:
    """A figure, and from where to where it lies by another figure of the same output, which `source` names."""

    figure: str
    value: float
    source: str
    low: float
    high: float

    def __str__(self) -> str:
        """Return both figures in words."""
        if self.low == self.high:
            return f"{self.figure}: {self.value:.8g}, but {self.low:.8g} by {self.source}"
        return f"{self.figure}: {self.value:.8g}, but {self.low:.8g} to {self.high:.8g} by {self.source}"


def same(figure: str, value: float, source: str, reference: float, slack: float = 0) -> Check:
    """Return the check that two figures are the same, up to `slack`."""
    return Check(figure, value, source, reference - slack, reference + slack)


class SessionOperation(NamedTuple):
    """An operation of one session, all its attempts included; times by CLOCK_MONOTONIC of the client's machine."""

    thread: int  # that serves the session, by its number in the DBMS's own namespace
    operation: str
    begin_ns: int
    end_ns: int


@dataclass(frozen=True)
class LoadResult:
    """What the client counted and timed in the measured window.

    `operations` has READ, UPDATE, INSERT, SCAN, DELETE (or the transactions of TPC-C) as they occurred, and ALL; each
    with ok, failed, and latencies of the successful ones in microseconds: mean_us, p50_us, p95_us, p99_us, p999_us,
    max_us (None without any); from YCSB's client also retried, attempts that were repeated because they conflicted
    with others. An operation is one call of the DBMS (a read-modify-write counts as a READ and an UPDATE) or one whole
    transaction. `intervals` holds a dict for each interval and operation in order of time: t_s (its end, 0 is the end
    of the warm-up), op, ops (successful ones), failed, mean_us, p50_us, p95_us, p99_us, max_us. `checks` says what the
    data was checked for after the run: name, holds, detail. `checks_of_output` are what the generator states twice,
    `in_flight` is the number of requests that can be outstanding at most,
    `interval_s` the length of the intervals where the generator chooses it.
    """

    window_s: float
    operations: dict[str, dict[str, Any]]
    intervals: list[dict[str, Any]]
    checks: Sequence[dict[str, Any]] = field(default=())
    statements: Sequence[dict[str, Any]] = field(default=())  # by transaction and table, as in table `statements`
    sessions: Sequence[SessionOperation] = field(default=())  # only where it was asked for, warm-up included
    first_failure: str | None = None  # what the DBMS or its driver said when the first operation failed
    effective: Mapping[str, str] | None = None  # values in force after the window, as the first connection was answered
    checks_of_output: Sequence[Check] = field(default=())
    in_flight: int | None = None
    interval_s: float | None = None


def parse_result(read: Callable[[str], str], checked: Mapping[str, Any], in_flight: int | None = None) -> LoadResult:
    """Return the figures of a finished run, whose files `read` gives by their names, and what its last event says."""
    summary = json.loads(read(SUMMARY))
    intervals = [_typed(row) for row in csv.DictReader(read(INTERVALS).splitlines())]
    window_s, failure = summary["window_s"], summary["first_failure"]
    return LoadResult(
        window_s,
        summary["operations"],
        intervals,
        checked["checks"],
        summary["statements"],
        first_failure=failure,
        effective=checked["effective"] or None,
        in_flight=in_flight,
    )


def parse_sessions(text: str) -> list[SessionOperation]:
    """Return the operations of all sessions, as the client wrote them."""
    return [
        SessionOperation(int(thread), operation, int(begin), int(end) if end else _UNDER_WAY)
        for thread, operation, begin, end in csv.reader(text.splitlines()[1:])
    ]


def _typed(row: dict[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = {"op": row.pop("op")}
    for name in ("ops", "failed"):
        typed[name] = int(row.pop(name))
    return typed | {name: float(value) if value else None for name, value in row.items()}
