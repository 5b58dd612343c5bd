"""wtperf of WiredTiger with ``-m {out}``, ``sample_interval=1,sample_rate=1``: its report, monitor, latency files."""

import json
import re
from typing import Any

from knobscope.generators.output import (
    PERCENTILES,
    Output,
    find_once,
    interval,
    operation,
    percentile,
    require_rising,
    whole_lines,
)
from knobscope.generators.results import Check, LoadResult, same
from knobscope.processes import read_foreign

_KINDS = ("insert", "modify", "read", "update")
_EXECUTED = r"Executed ([0-9]+) (\w+) operations(?: \(([0-9]+)%\) ([0-9]+) ops/sec)?$"
#: The first operation of a thread is not timed, and sampling ends a moment before the count.
_UNTIMED = 0.01


def read_wtperf(output: Output, interval_s: float) -> LoadResult:
    """Read totals from its report (test.stat), percentiles from its files of latencies, intervals from its monitor."""
    report = output.out / "test.stat"
    if not report.exists():
        raise ValueError("no test.stat")
    text = read_foreign(report)
    executed = re.findall(_EXECUTED, text, re.MULTILINE)
    counts = {kind: int(count) for count, kind, *_ in executed}
    if not counts or len(counts) < len(executed):
        raise ValueError("no closing report, or two")
    window_s = output.window(float(find_once(r"Run completed: ([0-9]+) seconds$", text, "the end of the run")))
    histograms = {kind: _read_histogram(output, kind) for kind in _KINDS}
    operations = {
        kind.upper(): operation(counts[kind], 0, _latencies(histograms[kind])) for kind in _KINDS if counts.get(kind)
    }
    ok = sum(figures["ok"] for figures in operations.values())
    checks = [
        same(f"{kind} operations", counts.get(kind, 0), "its latencies", timed, output.threads + 1 + _UNTIMED * timed)
        for kind, histogram in histograms.items()
        for timed in [sum(number for _, number in histogram)]
    ]
    checks += [
        same(f"{kind} operations", int(count), "rate and time", int(rate) * window_s, window_s + 1 + 0.01 * int(count))
        for count, kind, _, rate in executed
        if rate
    ]
    every = [entry for histogram in histograms.values() for entry in histogram]
    operations["ALL"] = operation(ok, 0, _latencies(every))
    # Of bins that are as wide as an operation takes, only the least sum says anything.
    least_s = sum((value - _width(value)) * number for value, number in every) / 1e6
    most_s = output.threads * (window_s + max((value for value, _ in every), default=0.0) / 1e6)
    source = f"{output.threads} requests at a time in {window_s:.3g} s"
    checks.append(Check("all latencies together (s)", least_s, source, 0, 1.05 * most_s))
    monitored = _monitor(output)
    checks.append(Check("lines of monitor.json", len(monitored), "the window", window_s - 2, window_s + 2))
    intervals = _intervals(monitored, ok, window_s)
    return LoadResult(window_s, operations, intervals, checks_of_output=checks, interval_s=1)


def _read_histogram(output: Output, kind: str) -> list[tuple[float, int]]:
    """Return (microseconds, operations); the file is there when something of this kind was sampled.

    ValueError where the operations so far, which each line has, are not the sum of those above.
    """
    path = output.out / f"latency.{kind}"
    lines = whole_lines(read_foreign(path), path.name) if path.exists() else []
    entries: list[tuple[float, int]] = []
    total = 0
    for line in lines:
        if line.startswith("#"):
            continue
        latency, count, so_far = map(int, line.split(",")[:3])
        total += count
        if total != so_far:
            raise ValueError(f"{path.name} has {total} operations up to {latency} µs and says {so_far}")
        entries.append((float(latency), count))
    require_rising((latency for latency, _ in entries), path.name)
    return entries


def _latencies(histogram: list[tuple[float, int]]) -> dict[str, float | None]:
    ordered = sorted(histogram)
    count = sum(number for _, number in ordered)
    if not count:
        return {}
    mean = sum((value - _width(value) / 2) * number for value, number in ordered) / count
    shares = {name: percentile(ordered, share) for name, share in PERCENTILES.items()}
    return {"mean_us": mean, "max_us": ordered[-1][0], **shares}


def _width(value: float) -> float:
    """Return how wide a bin is that ends at these microseconds: bins of a microsecond, a millisecond, a second."""
    return 1.0 if value <= 1_000 else 1_000.0 if value <= 1_000_000 else 1_000_000.0


def _monitor(output: Output) -> list[int]:
    """Return the operations of each second that the monitor saw."""
    entries = [json.loads(line)["wtperf"] for line in read_foreign(output.out / "monitor.json").splitlines()]
    return [sum(entry[kind]["ops per sec"] for kind in _KINDS if kind in entry) for entry in entries]


def _intervals(monitored: list[int], ok: int, window_s: float) -> list[dict[str, Any]]:
    """Return a row per second; the monitor has stopped before the last one is over: that is what is left."""
    whole = max(1, round(window_s))
    rows = [interval(float(number), ops) for number, ops in enumerate(monitored[: whole - 1], 1)]
    return [*rows, interval(window_s, max(0, ok - sum(row["ops"] for row in rows)))]
