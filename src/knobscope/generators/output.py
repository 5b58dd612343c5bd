"""What a generator left behind, and the arithmetic that its parsers share."""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    import numpy.typing as npt

PERCENTILES = {"p50_us": 50.0, "p95_us": 95.0, "p99_us": 99.0, "p999_us": 99.9}

#: Durations of a call are ours, those of a window the generator's, some of them rounded.
_CLOCKS_S = 0.1


@dataclass(frozen=True)
class Output:
    """Output of a call that ended well: lines with the seconds at which they came, its duration, its directories.

    `threads` is the number of clients that it was called with.
    """

    lines: list[tuple[float, str]]
    duration_s: float
    out: Path
    data: Path
    threads: int

    def window(self, seconds: float) -> float:
        """Return the length of a window. ValueError when it is none, or longer than the call that it was part of."""
        if not 0 < seconds <= self.duration_s + _CLOCKS_S:
            raise ValueError(f"no window of {seconds:.8g} s fits into a call of {self.duration_s:.3f} s")
        return seconds

    @property
    def text(self) -> str:
        """All lines."""
        return "\n".join(line for _, line in self.lines)


def find_once(pattern: str, text: str, label: str) -> str:
    """Return the only match of a pattern. ValueError for output that was cut before `label`, or has it twice."""
    matches = re.findall(pattern, text, re.MULTILINE)
    if len(matches) != 1:
        raise ValueError(f"{len(matches)} lines with {label} instead of one" if matches else f"no line with {label}")
    return str(matches[0])


def require_rising(values: Iterable[float], label: str) -> None:
    """Raise ValueError unless each value is above the one before: a line of `label` was changed or is there twice."""
    for before, after in pairwise(values):
        if after <= before:
            raise ValueError(f"{label} goes from {before:g} to {after:g}")


def whole_lines(text: str, name: str) -> list[str]:
    """Return the lines of a file. ValueError when it ends inside of one."""
    if text and not text.endswith("\n"):
        raise ValueError(f"{name} ends inside a line: {text[-80:].splitlines()[-1]!r}")
    return text.splitlines()


def operation(ok: int, failed: int, latencies: Mapping[str, float | None]) -> dict[str, Any]:
    """Return an entry of `LoadResult.operations`; latencies in microseconds, those not given are unknown."""
    defaults = dict.fromkeys(("mean_us", *PERCENTILES, "max_us"))
    return {"ok": ok, "failed": failed, **defaults, **latencies}


def interval(
    end_s: float, ops: int, failed: int = 0, latencies: Mapping[str, float | None] = MappingProxyType({})
) -> dict[str, Any]:
    """Return a row of `LoadResult.intervals`, of all operations together."""
    defaults = dict.fromkeys(("mean_us", "p50_us", "p95_us", "p99_us", "max_us"))
    return {"t_s": end_s, "op": "ALL", "ops": ops, "failed": failed, **defaults, **latencies}


def summarise_latencies(values_us: "npt.ArrayLike") -> dict[str, float | None]:
    """Return mean, percentiles and maximum of single latencies (microseconds), None for each without any."""
    ordered = np.sort(np.asarray(values_us, float))
    count = len(ordered)
    if not count:
        return dict.fromkeys(("mean_us", *PERCENTILES, "max_us"))
    ranks = {name: min(count, max(1, math.ceil(share / 100 * count))) - 1 for name, share in PERCENTILES.items()}
    shares = {name: float(ordered[rank]) for name, rank in ranks.items()}
    return {"mean_us": float(ordered.mean()), **shares, "max_us": float(ordered[-1])}


def percentile(histogram: Iterable[tuple[float, int]], share: float) -> float | None:
    """Return the value of a histogram of (value, count), in order of value, below which `share` percent lie."""
    bins = list(histogram)
    wanted = math.ceil(sum(count for _, count in bins) * share / 100)
    cumulative = 0
    for value, count in bins:
        cumulative += count
        if cumulative >= max(1, wanted):
            return value
    return None


def even_intervals(progress: Sequence[tuple[float, float]], length_s: float, window_s: float) -> list[dict[str, Any]]:
    """Return rows of intervals of equal length from (seconds, operations so far), in order of time.

    Operations are taken to be even between two reports. What is left at the end joins the last interval when it is
    shorter than half of one, as in the timed client.
    """
    ends = [length_s * (number + 1) for number in range(max(1, round(window_s / length_s)))]
    ends[-1] = window_s
    seconds, operations = zip((0.0, 0.0), *progress, strict=True)
    totals = np.interp(ends, seconds, operations).round()
    return [interval(end, int(ops)) for end, ops in zip(ends, np.diff(totals, prepend=0), strict=True)]
