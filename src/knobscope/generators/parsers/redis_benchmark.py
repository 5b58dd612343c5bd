"""redis-benchmark and valkey-benchmark: one test (``-t set``), its progress lines and its latency report."""

import re

from knobscope.generators.output import Output, even_intervals, operation
from knobscope.generators.results import LoadResult

__all__ = ["read_redis_benchmark"]

_PROGRESS = re.compile(r"^([A-Za-z ()]+): rps=([0-9.]+) \(overall: ([0-9.]+)\)")
_DONE = re.compile(r"([0-9]+) requests completed in ([0-9.]+) seconds")


def read_redis_benchmark(output: Output, interval_s: float) -> LoadResult:
    """Read the report of the last test; times of the progress lines are those at which they came.

    Progress has rates only: operations so far are the overall rate times the time since the first of its lines.
    """
    done = _DONE.findall(output.text)
    if not done:
        raise ValueError("no finished test")
    requests, window_s = int(done[-1][0]), float(done[-1][1])
    names = [match[1] for _, line in output.lines if (match := _PROGRESS.match(line.strip()))]
    latencies = _latencies(output.text)
    totals = operation(requests, 0, latencies)
    operations = {"ALL": totals, **({names[-1].upper(): totals} if names else {})}
    return LoadResult(window_s, operations, even_intervals(_progress(output, requests, window_s), interval_s, window_s))


def _progress(output: Output, requests: int, window_s: float) -> list[tuple[float, float]]:
    """Return (seconds since the test began, operations so far)."""
    ends = [at for at, line in output.lines if _DONE.search(line)]
    begin = ends[-1] - window_s
    points = []
    for at, line in output.lines:
        match = _PROGRESS.match(line.strip())
        if match and 0 < at - begin < window_s:
            points.append((at - begin, min(float(requests), float(match[3]) * (at - begin))))
    return [*sorted(points), (window_s, float(requests))]


def _latencies(text: str) -> dict[str, float | None]:
    """Return mean, p50, p95, p99 and max of the summary, which has milliseconds."""
    rows = re.findall(r"avg\s+min\s+p50\s+p95\s+p99\s+max\s*\n\s*([0-9. ]+)", text)
    if not rows:
        raise ValueError("no latency summary")
    mean, _, p50, p95, p99, highest = (float(word) * 1000 for word in rows[-1].split()[:6])
    return {"mean_us": mean, "p50_us": p50, "p95_us": p95, "p99_us": p99, "max_us": highest}
