"""redis-benchmark and valkey-benchmark: one test (``-t set``), its progress lines and its latency report."""

import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise

from knobscope.generators.output import Output, even_intervals, find_once, operation
from knobscope.generators.results import Check, LoadResult, same

_PROGRESS = re.compile(r"^([A-Za-z ()]+): rps=([0-9.]+) \(overall: ([0-9.]+)\)")
_DONE = r"^ *([0-9]+ requests completed in [0-9.]+ seconds)$"
_BY_PERCENTILE = (
    r"^Latency by percentile distribution:\n((?:[0-9.]+% <= [0-9.]+ milliseconds \(cumulative count [0-9]+\)\n)+)$"
)
_STEP = re.compile(r"% <= ([0-9.]+) milliseconds \(cumulative count ([0-9]+)\)$", re.MULTILINE)
_SUMMARY = r"^ +avg +min +p50 +p95 +p99 +max *\n +([0-9.]+(?: +[0-9.]+){5}) *$"
#: Latencies are printed in thousandths of a millisecond, and kept with three digits.
_STEP_US, _STEP_SHARE = 1.1, 0.01
#: The last requests that are sent together are sent whole: those beyond the number wanted are counted, but not timed.
_MOST_PIPELINED = 1000


def read_redis_benchmark(output: Output, interval_s: float) -> LoadResult:
    """Read the report of the only test; times of the progress lines are those at which they came.

    Progress has rates only: operations so far are the overall rate times the time since the first of its lines.
    """
    text = output.text
    fields = find_once(_DONE, text, "the requests").split()
    rate = float(find_once(r"^ *throughput summary: ([0-9.]+) requests per second$", text, "the throughput"))
    requests = int(fields[0])
    if requests == 0 or rate == 0:
        raise ValueError("no request in its report")
    window_s = output.window(requests / rate)  # with more digits than the length that it prints
    name = find_once(r"^====== (.+) ======$", text, "the name of the test")
    clients = int(find_once(r"^ *([0-9]+) parallel clients$", text, "the clients"))
    steps = _steps(find_once(_BY_PERCENTILE, text, "the distribution of latencies"))
    timed = steps[-1][1]
    figures = find_once(_SUMMARY, text, "the summary of latencies").split()
    mean, least, p50, p95, p99, highest = (float(word) * 1000 for word in figures)
    latencies = {"mean_us": mean, "p50_us": p50, "p95_us": p95, "p99_us": p99, "max_us": highest}
    checks = [
        same("length of the window (s)", float(fields[4]), "requests and throughput", window_s, 0.006),
        Check("requests", requests, "its distribution of latencies", timed, timed + _MOST_PIPELINED - 1),
        same("clients", clients, "the call", output.threads),
        *_latency_checks(steps, least, latencies),
    ]
    totals = operation(requests, 0, latencies)
    intervals = even_intervals(_progress(output, requests, window_s), interval_s, window_s)
    return LoadResult(window_s, {"ALL": totals, name.upper(): totals}, intervals, checks_of_output=checks)


def _steps(text: str) -> list[tuple[float, int]]:
    """Return (latency in microseconds, requests up to it), both from low to high."""
    steps = [(float(latency) * 1000, int(count)) for latency, count in _STEP.findall(text)]
    if any(before[0] > after[0] or before[1] > after[1] for before, after in pairwise(steps)):
        raise ValueError("its distribution of latencies does not rise")
    return steps


def _latency_checks(
    steps: Sequence[tuple[float, int]], least: float, latencies: Mapping[str, float | None]
) -> Iterator[Check]:
    """Hold mean and percentiles against the distribution, whose steps are where each of them may lie."""
    source, total = "its distribution of latencies", steps[-1][1]
    edges = [(least, 0), *steps]

    def between(figure: str, low: float, high: float) -> Check:
        slack = _STEP_US + _STEP_SHARE * high
        return Check(figure, latencies[figure] or 0.0, source, low - slack, high + slack)

    for figure, share in (("p50_us", 0.5), ("p95_us", 0.95), ("p99_us", 0.99), ("max_us", 1.0)):
        index = next(number for number, (_, count) in enumerate(steps, 1) if count >= share * total)
        yield between(figure, edges[index - 1][0], edges[index][0])
    parts = [(low, high, above - below) for (low, below), (high, above) in pairwise(edges)]
    lowest = sum(low * count for low, _, count in parts) / max(1, total)
    yield between("mean_us", lowest, sum(high * count for _, high, count in parts) / max(1, total))


def _progress(output: Output, requests: int, window_s: float) -> list[tuple[float, float]]:
    """Return (seconds since the test began, operations so far)."""
    begin = next(at for at, line in output.lines if re.search(_DONE, line)) - window_s
    points = []
    for at, line in output.lines:
        match = _PROGRESS.match(line.strip())
        if match and 0 < at - begin < window_s:
            points.append((at - begin, min(float(requests), float(match[3]) * (at - begin))))
    return [*sorted(points), (window_s, float(requests))]
