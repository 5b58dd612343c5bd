"""db_bench of RocksDB: one benchmark with ``--histogram`` and ``--report_file={out}/report.csv``."""

import csv
import re
from dataclasses import dataclass

from knobscope.generators.output import Output, even_intervals, operation
from knobscope.generators.results import LoadResult
from knobscope.processes import read_foreign

__all__ = ["read_db_bench"]

_SHARES = {"p50_us": 50.0, "p95_us": 95.0, "p99_us": 99.0, "p999_us": 99.9}


def read_db_bench(output: Output, interval_s: float) -> LoadResult:
    """Read the last benchmark; percentiles are interpolated inside the bins of its histograms, as RocksDB does."""
    text = output.text
    result = re.findall(r"micros/op [0-9]+ ops/sec ([0-9.]+) seconds ([0-9]+) operations", text)
    parts = re.findall(r"^Microseconds per (\w+):\n(.*?)(?=^Microseconds|\Z)", text, re.MULTILINE | re.DOTALL)
    if not result or not parts:
        raise ValueError("no result with histograms")
    window_s, ok = float(result[-1][0]), int(result[-1][1])
    histograms = {name.upper(): _Histogram.read(part) for name, part in parts}
    operations = {name: operation(one.count, 0, one.latencies) for name, one in histograms.items()}
    operations["ALL"] = operation(ok, 0, _Histogram.join(list(histograms.values())).latencies)
    return LoadResult(window_s, operations, even_intervals(_progress(output, ok, window_s), interval_s, window_s))


@dataclass(frozen=True)
class _Histogram:
    """Latencies of one kind of operation, in microseconds."""

    mean_us: float
    max_us: float
    bins: list[tuple[float, float, int]]  # from, to, operations

    @classmethod
    def read(cls, text: str) -> "_Histogram":
        mean, highest = re.search(r"Average: ([0-9.]+)", text), re.search(r"Max: ([0-9.]+)", text)
        if mean is None or highest is None:
            raise ValueError("a histogram without average")
        bins = re.findall(r"^[\[(]\s*([0-9.]+),\s*([0-9.]+) \]\s+([0-9]+)", text, re.MULTILINE)
        return cls(float(mean[1]), float(highest[1]), [(float(a), float(b), int(count)) for a, b, count in bins])

    @classmethod
    def join(cls, many: "list[_Histogram]") -> "_Histogram":
        total = max(1, sum(one.count for one in many))
        mean = sum(one.mean_us * one.count for one in many) / total
        return cls(mean, max(one.max_us for one in many), sorted(entry for one in many for entry in one.bins))

    @property
    def count(self) -> int:
        return sum(count for *_, count in self.bins)

    @property
    def latencies(self) -> dict[str, float | None]:
        shares = {name: self._below(share) for name, share in _SHARES.items()}
        return {"mean_us": self.mean_us, "max_us": self.max_us, **shares}

    def _below(self, share: float) -> float | None:
        """Return the latency below which `share` percent lie."""
        wanted = self.count * share / 100
        seen = 0
        for low, high, count in self.bins:
            if count and seen + count >= wanted:
                return low + (high - low) * (wanted - seen) / count
            seen += count
        return None


def _progress(output: Output, ok: int, window_s: float) -> list[tuple[float, float]]:
    """Return (seconds, operations so far), scaled so that the end fits the total."""
    points = []
    done = 0.0
    for row in csv.DictReader(read_foreign(output.out / "report.csv").splitlines()):
        done += float(row["interval_qps"])
        points.append((float(row["secs_elapsed"]), done))
    points = [point for point in points if point[0] < window_s and point[1] <= ok]
    return [*points, (window_s, float(ok))]
