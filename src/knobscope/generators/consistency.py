"""Holds the figures of one output against each other: what was cut, lost or doubled shows as a contradiction.

Generators state most figures twice: a total and what it is the sum of, a rate and a length, a mean and a histogram. The
parsers declare what their generator states (`LoadResult.checks_of_output`); the rest follows from any result. A client
thread has one request outstanding at most, so latencies add up to no more than threads x time (Little, Operations
Research 9, 1961).
"""

import math
from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

from knobscope.generators.results import Check, LoadResult, same

_PERCENTILES = ("p50_us", "p95_us", "p99_us", "p999_us", "max_us")
_SHARES = (0.50, 0.95, 0.99, 0.999, 1.0)
#: Percentiles come from histograms whose bins may be half as wide as their values.
_COARSE = 1.5
#: Clocks are read before and after what they time.
_CLOCKS = 1.05


def require_consistent(result: LoadResult) -> None:
    """Raise ValueError with the first two figures of a result that contradict each other."""
    for check in _checks(result):
        if not check.low <= check.value <= check.high:  # NaN is never inside
            raise ValueError(f"its figures contradict each other: {check}")


def _checks(result: LoadResult) -> Iterator[Check]:
    yield Check("length of the window (s)", result.window_s, "the clock", 1e-9, math.inf)
    yield from result.checks_of_output
    total = result.operations["ALL"]
    rows = [row["ops"] for row in result.intervals if row["op"] == "ALL" and row["t_s"] > 0]
    yield same("operations", total["ok"], "its intervals", sum(rows), slack=len(rows))
    kinds = [figures["ok"] for name, figures in result.operations.items() if name != "ALL"]
    if kinds:
        yield same("operations", total["ok"], "kinds of operations together", sum(kinds))
    for name, figures in result.operations.items():
        yield Check(f"operations ({name})", min(figures["ok"], figures["failed"]), "the least count", 0, math.inf)
        yield from _latency_checks(name, figures)
    if result.in_flight is not None and total["mean_us"] is not None:
        longest_s = (total["max_us"] or 0) / 1e6
        most = _CLOCKS * result.in_flight * (result.window_s + longest_s)
        source = f"{result.in_flight} requests at a time in {result.window_s:.3g} s"
        yield Check("all latencies together (s)", total["ok"] * total["mean_us"] / 1e6, source, 0, most)


def _latency_checks(name: str, figures: Mapping[str, Any]) -> Iterator[Check]:
    mean = figures["mean_us"]
    percentiles = [
        (share, figures[key]) for share, key in zip(_SHARES, _PERCENTILES, strict=True) if figures[key] is not None
    ]
    if mean is None and not percentiles:  # a generator that times no operations
        return
    if mean is None or any(figures[key] is None for key in _PERCENTILES[:3]):
        raise ValueError(f"mean and percentiles of {name} are not all there")
    for (_, lower), (share, higher) in pairwise(percentiles):
        yield Check(f"percentile {100 * share:g} of {name} (µs)", higher, "a lower percentile", lower, math.inf)
    least = max((1 - share) * value for share, value in percentiles)
    # A percentile's rank is rounded to the nearest: that one may lie above it, too.
    rank = 0.5 / max(figures["ok"], 1)
    below = [0.0, *(max(share - rank, 0.0) for share, _ in percentiles)]
    most = sum((share - before) * value for before, (share, value) in zip(below, percentiles, strict=False))
    if percentiles[-1][0] == 1:
        yield Check(f"mean latency of {name} (µs)", mean, "its percentiles", least / _COARSE, most * _COARSE)
