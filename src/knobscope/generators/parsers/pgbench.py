"""pgbench: totals from its report, latencies and intervals from its transaction log (``-l --log-prefix={out}/log``)."""

import re
from collections import defaultdict

from knobscope.generators.output import Output, describe_latencies, operation
from knobscope.generators.results import LoadResult
from knobscope.processes import read_foreign

__all__ = ["read_pgbench"]


def read_pgbench(output: Output, interval_s: float) -> LoadResult:
    """Read a run with ``-T`` and ``-l``; times in the log are those at which transactions ended, in microseconds."""
    window_s = float(_find(r"^duration: ([0-9.]+) s", output.text))
    failed = int(_find(r"^number of failed transactions: ([0-9]+)", output.text, "0"))
    ended = sorted(_read_log(output))
    if not ended:
        raise ValueError("no transaction in its log")
    begin = ended[0][0] - ended[0][1]
    count = max(1, round(window_s / interval_s))
    by_interval: dict[int, list[float]] = defaultdict(list)
    for at, latency in ended:
        by_interval[min(count - 1, int((at - begin) / 1e6 / interval_s))].append(latency)
    latencies = [latency for _, latency in ended]
    totals = {"ALL": operation(len(ended), failed, describe_latencies(latencies))}
    intervals = [
        {
            "t_s": interval_s * (number + 1),
            "op": "ALL",
            "ops": len(by_interval[number]),
            "failed": 0,
            **describe_latencies(by_interval[number]),
        }
        for number in range(count)
    ]
    return LoadResult(window_s, totals, intervals)


def _find(pattern: str, text: str, otherwise: str | None = None) -> str:
    match = re.search(pattern, text, re.MULTILINE)
    if match is None and otherwise is None:
        raise ValueError(f"nothing like {pattern!r}")
    return match[1] if match else str(otherwise)


def _read_log(output: Output) -> list[tuple[float, float]]:
    """Return (end, latency) of all transactions in microseconds; the columns are those of pgbench's manual."""
    found = []
    for path in output.out.glob("log.*"):
        for line in read_foreign(path).splitlines():
            _client, _number, latency, _script, seconds, microseconds = line.split()[:6]
            if latency.isdigit():  # not "skipped" or "failed"
                found.append((int(seconds) * 1e6 + int(microseconds), float(latency)))
        path.unlink()  # the next call writes a log of its own
    return found
