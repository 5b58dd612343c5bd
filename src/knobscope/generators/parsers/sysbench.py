"""sysbench: transactions of a Lua test, with ``--report-interval=1 --histogram`` for intervals and percentiles."""

import math
import re
from collections.abc import Sequence
from typing import Any

from knobscope.generators.output import PERCENTILES, Output, find_once, interval, operation, percentile, require_rising
from knobscope.generators.results import Check, LoadResult, same

_INTERVAL = re.compile(r"^\[ ([0-9.]+)s \] .* tps: ([0-9.]+) .* lat \(ms,[0-9]+%\): ([0-9.]+) err/s: ([0-9.]+)")
_RATE = r"[0-9]+ +\([0-9.]+ per sec\.\)$"
#: Rates are printed for a time that differs a little from the one that is printed.
_CLOCKS = 0.005
#: What lines of progress may lack or have too much: their seconds are not exact.
_PROGRESS = 0.03
#: Bins of the histogram are this much wider than the one before.
_BIN = 0.03


def read_sysbench(output: Output, interval_s: float) -> LoadResult:
    """Read the report of a run; an ignored error is a transaction that failed, and was tried again."""
    text = output.text
    ok, ok_rate = _count_and_rate("transactions", text)
    failed, failed_rate = _count_and_rate("ignored errors", text)
    window_s = output.window(float(find_once(r"^ *total time: +([0-9.]+)s$", text, "the total time")))
    events = int(find_once(r"^ *total number of events: +([0-9]+)$", text, "the number of events"))
    threads = int(find_once(r"^Number of threads: ([0-9]+)$", text, "the threads"))
    histogram = [
        (float(value) * 1000, int(count))
        for value, count in re.findall(r"^ *([0-9.]+) \|\** +([0-9]+)$", text, re.MULTILINE)
    ]
    if not histogram:
        raise ValueError("no histogram")
    require_rising((value for value, _ in histogram), "its histogram (µs)")
    mean, least, highest, p95, total = (
        float(find_once(rf"^ *{name}: +([0-9.]+)$", text, f"the latency's {name}")) * 1000
        for name in ("avg", "min", "max", "95th percentile", "sum")
    )
    latencies = {"mean_us": mean, "max_us": highest}
    # The value of a bin may be above all that is in it.
    latencies |= {name: min(percentile(histogram, share) or 0.0, highest) for name, share in PERCENTILES.items()}
    checks = [
        same("transactions", ok, "the number of events", events),
        same("transactions", ok, "its histogram", sum(count for _, count in histogram)),
        same("transactions", ok, "rate and time", ok_rate * window_s, 1 + _CLOCKS * ok),
        same(
            "ignored errors", failed, "rate and time", failed_rate * window_s, 0.01 * (1 + window_s) + _CLOCKS * failed
        ),
        same("threads", threads, "the call", output.threads),
        same("mean latency (µs)", mean, "their sum", total / max(1, events), 6),
        Check(
            "percentile 95 (µs)", p95, "its histogram", *_bound_percentile(histogram, 95, highest, 6 + _CLOCKS * p95)
        ),
        same("shortest latency (µs)", least, "its histogram", histogram[0][0], 6 + _BIN * least),
        same("longest latency (µs)", highest, "its histogram", histogram[-1][0], 6 + _BIN * highest),
    ]
    progress = _progress(output)
    operations, whole = sum(row["ops"] for row in progress), max(1, round(window_s))
    if len(progress) >= whole:
        checks.append(same("transactions", ok, "its progress", operations, _PROGRESS * ok + threads + len(progress)))
    elif len(progress) == whole - 1:
        checks.append(Check("transactions", ok, "its progress", (1 - _PROGRESS) * operations - whole, math.inf))
    else:
        raise ValueError(f"{len(progress)} lines of progress in a window of {window_s:.3g} s")
    totals = operation(ok, failed, latencies)
    return LoadResult(
        window_s,
        {"ALL": totals},
        _intervals(progress, ok, window_s),
        checks_of_output=checks,
        in_flight=threads,
        interval_s=1,
    )


def _bound_percentile(
    histogram: Sequence[tuple[float, int]], share: float, highest: float, slack: float
) -> list[float]:
    """Return between which latencies a percentile lies: sysbench rounds its rank, where others take the next one up."""
    half = 50 / max(1, sum(count for _, count in histogram))
    near = [min(percentile(histogram, share + step) or 0.0, highest) for step in (-half, half)]
    return [near[0] - slack, near[1] + slack]


def _count_and_rate(name: str, text: str) -> tuple[int, float]:
    fields = find_once(rf"^ *{name}: +({_RATE})", text, name).split()
    return int(fields[0]), float(fields[1].removeprefix("("))


def _progress(output: Output) -> list[dict[str, Any]]:
    """Return a row for each line of progress. ValueError where a second is missing or there twice."""
    rows: list[dict[str, Any]] = []
    for _, line in output.lines:
        if match := _INTERVAL.match(line.strip()):
            end, tps, p95_ms, errors = map(float, match.groups())
            if end != len(rows) + 1:
                raise ValueError(f"line {len(rows) + 1} of its progress is that of second {end:g}")
            rows.append(interval(end, round(tps), round(errors), {"p95_us": p95_ms * 1000}))
    return rows


def _intervals(progress: list[dict[str, Any]], ok: int, window_s: float) -> list[dict[str, Any]]:
    """Return a row per second. The line of the last one comes too early, or not at all: it has what is left."""
    last = max(1, round(window_s)) - 1
    p95_us = progress[last]["p95_us"] if len(progress) > last else None
    remaining = ok - sum(row["ops"] for row in progress[:last])
    return [*progress[:last], interval(window_s, max(0, remaining), latencies={"p95_us": p95_us})]
