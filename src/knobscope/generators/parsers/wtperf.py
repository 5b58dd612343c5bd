"""wtperf of WiredTiger with ``-m {out}``, ``sample_interval=1,sample_rate=1``: its report, monitor, latency files."""

import json
import re
from typing import Any

from knobscope.generators.output import Output, operation, percentile
from knobscope.generators.results import LoadResult
from knobscope.processes import read_foreign

__all__ = ["read_wtperf"]

_KINDS = ("insert", "modify", "read", "update")
_SHARES = {"p50_us": 50.0, "p95_us": 95.0, "p99_us": 99.0, "p999_us": 99.9}


def read_wtperf(output: Output, interval_s: float) -> LoadResult:
    """Read totals from its report (test.stat), percentiles from its files of latencies, intervals from its monitor."""
    report = output.out / "test.stat"
    if not report.exists():
        raise ValueError("no test.stat")
    text = read_foreign(report)
    done = {kind: int(count) for count, kind in re.findall(r"Executed ([0-9]+) (\w+) operations", text)}
    ran = re.findall(r"Run completed: ([0-9]+) seconds", text)
    if not done or not ran:
        raise ValueError("no closing report")
    histograms = {kind: _read_histogram(output, kind) for kind in _KINDS}
    operations = {
        kind.upper(): operation(done[kind], 0, _latencies(histograms[kind])) for kind in _KINDS if done.get(kind)
    }
    every = [entry for histogram in histograms.values() for entry in histogram]
    operations["ALL"] = operation(sum(one["ok"] for one in operations.values()), 0, _latencies(every))
    return LoadResult(float(ran[-1]), operations, _intervals(output, operations["ALL"]["ok"], float(ran[-1])))


def _read_histogram(output: Output, kind: str) -> list[tuple[float, int]]:
    """Return (microseconds, operations); the file is there when something of this kind was sampled."""
    path = output.out / f"latency.{kind}"
    lines = read_foreign(path).splitlines() if path.exists() else []
    return [(float(fields[0]), int(fields[1])) for line in lines if line[:1].isdigit() and (fields := line.split(","))]


def _latencies(histogram: list[tuple[float, int]]) -> dict[str, float | None]:
    ordered = sorted(histogram)
    count = sum(number for _, number in ordered)
    if not count:
        return {}
    mean = sum(value * number for value, number in ordered) / count
    shares = {name: percentile(ordered, share) for name, share in _SHARES.items()}
    return {"mean_us": mean, "max_us": ordered[-1][0], **shares}


def _intervals(output: Output, ok: int, window_s: float) -> list[dict[str, Any]]:
    """Return a row per second; the monitor has stopped before the last one is over: that is what is left."""
    rows: list[dict[str, Any]] = []
    for line in read_foreign(output.out / "monitor.json").splitlines():
        entry = json.loads(line)["wtperf"]
        rows.append(_row(len(rows) + 1.0, sum(entry[kind]["ops per sec"] for kind in _KINDS if kind in entry)))
    whole = max(1, round(window_s))
    rows = rows[: whole - 1]
    return [*rows, _row(window_s, max(0, ok - sum(row["ops"] for row in rows)))]


def _row(end: float, ops: int) -> dict[str, Any]:
    latencies = dict.fromkeys(("mean_us", "p50_us", "p95_us", "p99_us", "max_us"))
    return {"t_s": end, "op": "ALL", "ops": ops, "failed": 0, **latencies}
