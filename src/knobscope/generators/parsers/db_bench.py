"""db_bench of RocksDB: one benchmark with ``--histogram`` and ``--report_file={out}/report.csv``."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

from knobscope.generators.output import (
    PERCENTILES,
    Output,
    even_intervals,
    find_once,
    operation,
    require_rising,
    whole_lines,
)
from knobscope.generators.results import Check, LoadResult, same
from knobscope.processes import read_foreign

_RESULT = r"^(\w+ *: +[0-9.]+ micros/op [0-9]+ ops/sec [0-9.]+ seconds [0-9]+ operations);"
_HEAD = re.compile(
    r"Count: ([0-9]+) Average: ([0-9.]+)  StdDev: [0-9.]+\n"
    r"Min: ([0-9]+)  Median: ([0-9.]+)  Max: ([0-9]+)\n"
    r"Percentiles: P50: ([0-9.]+) P75: [0-9.]+ P99: ([0-9.]+) P99\.9: ([0-9.]+) P99\.99: [0-9.]+\n-+\n"
)
_BIN = re.compile(r"^[\[(] *([0-9.]+), *([0-9.]+) \] +([0-9]+) ", re.MULTILINE)


def read_db_bench(output: Output, interval_s: float) -> LoadResult:
    """Read the only benchmark; percentiles are interpolated inside the bins of its histograms, as RocksDB does."""
    text = output.text
    benchmark, _, figures = find_once(_RESULT, text, "the result").partition(":")
    if "while" in benchmark:
        raise ValueError(
            f"report.csv of {benchmark.strip()} also counts the operations of its background thread, which the result "
            "leaves out; choose a benchmark without one, such as readrandomwriterandom"
        )
    fields = figures.split()
    rate, window_s, ok = int(fields[2]), output.window(float(fields[4])), int(fields[6])
    parts = re.findall(r"^Microseconds per (\w+):\n(.*?)(?=^Microseconds|\Z)", text, re.MULTILINE | re.DOTALL)
    histograms = {name.upper(): _Histogram.read(part) for name, part in parts}
    if not histograms or len(histograms) < len(parts):
        raise ValueError("no histogram, or one twice")
    operations = {name: operation(histogram.count, 0, histogram.latencies) for name, histogram in histograms.items()}
    every = _Histogram.join(list(histograms.values()))
    operations["ALL"] = operation(ok, 0, every.latencies)
    rows = _report(output)
    checks = [
        same("operations", ok, "its histograms", every.count),
        same("operations", ok, "rate and time", rate * window_s, window_s + 0.001 * rate),
        Check("lines of report.csv", len(rows), "the window", window_s - 1.5, window_s + 1.5),
        Check("operations", ok, "report.csv", 0.99 * sum(rows) - len(rows), float("inf")),
        *(check for name, histogram in histograms.items() for check in histogram.checks(name)),
    ]
    points = [point for point in _progress(rows) if point[0] < window_s and point[1] <= ok]
    intervals = even_intervals([*points, (window_s, float(ok))], interval_s, window_s)
    return LoadResult(window_s, operations, intervals, checks_of_output=checks, in_flight=output.threads)


@dataclass(frozen=True)
class _Histogram:
    """Latencies of one kind of operation, in microseconds; `stated` are those that its head has."""

    mean_us: float
    min_us: float
    max_us: float
    bins: list[tuple[float, float, int]]  # from, to, operations
    stated_count: int
    stated: dict[str, float]

    @classmethod
    def read(cls, text: str) -> "_Histogram":
        head = _HEAD.match(text)
        if head is None:
            raise ValueError("a histogram without its head")
        count, mean, least, median, highest, p50, p99, p999 = (float(word) for word in head.groups())
        bins = [(float(a), float(b), int(number)) for a, b, number in _BIN.findall(text)]
        require_rising((edge for low, high, _ in bins for edge in (low, high - 1e-6)), "a histogram")
        stated = {"p50_us": p50, "p99_us": p99, "p999_us": p999}
        if abs(median - p50) > 0.01:
            raise ValueError(f"a histogram with the median {median:g} and the percentile 50 {p50:g}")
        return cls(mean, least, highest, bins, int(count), stated)

    @classmethod
    def join(cls, many: "list[_Histogram]") -> "_Histogram":
        total = max(1, sum(histogram.count for histogram in many))
        mean = sum(histogram.mean_us * histogram.count for histogram in many) / total
        least, highest = min(histogram.min_us for histogram in many), max(histogram.max_us for histogram in many)
        return cls(mean, least, highest, sorted(entry for histogram in many for entry in histogram.bins), total, {})

    def checks(self, name: str) -> Iterator[Check]:
        """Hold the head of the histogram against its bins."""
        yield same(f"operations ({name})", self.stated_count, "its histogram", self.count)
        for figure, value in self.stated.items():
            yield same(f"{figure} of {name}", value, "its histogram", self.latencies[figure] or 0.0, 0.011)
        low, high = (
            sum(bound * count for *bounds, count in self.bins for bound in bounds[at : at + 1]) for at in (0, 1)
        )
        total = max(1, self.count)
        yield Check(f"mean latency of {name} (µs)", self.mean_us, "its histogram", low / total, high / total)
        if self.bins:
            yield Check(f"longest latency of {name} (µs)", self.max_us, "its histogram", *self.bins[-1][:2])

    @property
    def count(self) -> int:
        return sum(count for *_, count in self.bins)

    @property
    def latencies(self) -> dict[str, float | None]:
        shares = {name: self._below(share) for name, share in PERCENTILES.items()}
        return {"mean_us": self.mean_us, "max_us": self.max_us, **shares}

    def _below(self, share: float) -> float | None:
        """Return the latency below which `share` percent lie, as RocksDB interpolates it."""
        wanted = self.count * share / 100
        cumulative = 0
        for low, high, count in self.bins:
            if count and cumulative + count >= wanted:
                within = low + (high - low) * (wanted - cumulative) / count
                return min(self.max_us, max(self.min_us, within))
            cumulative += count
        return None


def _report(output: Output) -> list[int]:
    """Return the operations of each second. ValueError where one is missing or there twice."""
    head, *lines = whole_lines(read_foreign(output.out / "report.csv"), "report.csv") or [""]
    if head != "secs_elapsed,interval_qps":
        raise ValueError(f"report.csv begins with {head[:80]!r}")
    rows = []
    for number, line in enumerate(lines, 1):
        second, qps = map(int, line.split(","))
        if second != number:
            raise ValueError(f"line {number} of report.csv is that of second {second}")
        rows.append(qps)
    return rows


def _progress(rows: list[int]) -> Iterator[tuple[float, float]]:
    """Yield (seconds, operations so far)."""
    total = 0
    for second, operations in enumerate(rows, 1):
        total += operations
        yield float(second), float(total)
