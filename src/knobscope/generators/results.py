"""The figures of a finished run, as the client wrote them."""

import csv
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = ["INTERVALS", "SUMMARY", "LoadResult", "parse_result"]

#: Files that the client leaves in its `out`.
SUMMARY, INTERVALS = "summary.json", "intervals.csv"


@dataclass(frozen=True)
class LoadResult:
    """What the client counted and timed in the measured window.

    `operations` has READ, UPDATE, INSERT, SCAN, DELETE (or the transactions of TPC-C) as they occurred, and ALL; each
    with ok, failed, and latencies of the successful ones in microseconds: mean_us, p50_us, p95_us, p99_us, p999_us,
    max_us (None without any); from YCSB's client also retried, attempts that were repeated because they conflicted
    with others. An operation is one call of the DBMS (a read-modify-write counts as a READ and an UPDATE) or one whole
    transaction. `intervals` holds a dict for each interval and operation in order of time: t_s (its end, 0 is the end
    of the warm-up), op, ops (successful ones), failed, mean_us, p50_us, p95_us, p99_us, max_us. `checks` says what the
    data was checked for after the run: name, holds, detail.
    """

    window_s: float
    operations: dict[str, dict[str, Any]]
    intervals: list[dict[str, Any]]
    checks: Sequence[dict[str, Any]] = field(default=())
    first_failure: str | None = None  # what the DBMS or its driver said when the first operation failed


def parse_result(read: Callable[[str], str], checks: Sequence[dict[str, Any]] = ()) -> LoadResult:
    """Return the figures of a finished run, whose files `read` gives by their names, and take its `checks` along."""
    summary = json.loads(read(SUMMARY))
    intervals = [_typed(row) for row in csv.DictReader(read(INTERVALS).splitlines())]
    return LoadResult(summary["window_s"], summary["operations"], intervals, checks, summary["first_failure"])


def _typed(row: dict[str, str]) -> dict[str, Any]:
    typed: dict[str, Any] = {"op": row.pop("op")}
    for name in ("ops", "failed"):
        typed[name] = int(row.pop(name))
    return typed | {name: float(value) if value else None for name, value in row.items()}
