"""sysbench: transactions of a Lua test, with ``--report-interval=1 --histogram`` for intervals and percentiles."""

import re
from typing import Any

from knobscope.generators.output import Output, operation, percentile
from knobscope.generators.results import LoadResult

__all__ = ["read_sysbench"]

_INTERVAL = re.compile(r"^\[ ([0-9.]+)s \] .* tps: ([0-9.]+) .* lat \(ms,[0-9]+%\): ([0-9.]+) err/s: ([0-9.]+)")


def read_sysbench(output: Output, interval_s: float) -> LoadResult:
    """Read the report of a run; an ignored error is a transaction that failed, and was tried again."""
    text = output.text
    ok = int(_find(r"transactions:\s+([0-9]+)", text))
    window_s = float(_find(r"total time:\s+([0-9.]+)s", text))
    failed = int(_find(r"ignored errors:\s+([0-9]+)", text))
    histogram = [
        (float(value) * 1000, int(count))
        for value, count in re.findall(r"^\s*([0-9.]+) \|\**\s+([0-9]+)$", text, re.MULTILINE)
    ]
    shares = {"p50_us": 50.0, "p95_us": 95.0, "p99_us": 99.0, "p999_us": 99.9}
    latencies = {
        "mean_us": float(_find(r"avg:\s+([0-9.]+)", text)) * 1000,
        "max_us": float(_find(r"max:\s+([0-9.]+)", text)) * 1000,
        **{name: percentile(histogram, share) for name, share in shares.items()},
    }
    totals = operation(ok, failed, latencies)
    return LoadResult(window_s, {"ALL": totals}, _intervals(output, ok, window_s))


def _find(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    if match is None:
        raise ValueError(f"nothing like {pattern!r}")
    return match[1]


def _intervals(output: Output, ok: int, window_s: float) -> list[dict[str, Any]]:
    """Return a row for each line of progress; the last one comes too late, or not at all: it is what is left."""
    rows: list[dict[str, Any]] = []
    for _, line in output.lines:
        match = _INTERVAL.match(line.strip())
        if match:
            end, tps, p95_ms, errors = map(float, match.groups())
            since = rows[-1]["t_s"] if rows else 0.0
            rows.append(_row(end, round(tps * (end - since)), round(errors * (end - since)), p95_ms * 1000))
    whole = max(1, round(window_s))
    rows = rows[:whole]
    if len(rows) < whole:
        rows.append(_row(window_s, max(0, ok - sum(row["ops"] for row in rows)), 0, None))
    return rows


def _row(end: float, ops: int, failed: int, p95_us: float | None) -> dict[str, Any]:
    return {
        "t_s": end,
        "op": "ALL",
        "ops": ops,
        "failed": failed,
        **dict.fromkeys(("mean_us", "p50_us", "p99_us", "max_us")),
        "p95_us": p95_us,
    }
