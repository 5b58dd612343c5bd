"""The points of a device's curves: which are measured, and what is read from the measured ones."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from statistics import median
from typing import Any, Literal

from knobscope.characterise.fio import FioFile, FioRefusedError
from knobscope.specs.device import Tier

__all__ = ["FULL", "QUICK", "Measured", "Point", "Schedule", "choose_knee", "measure_point", "merge", "rank_tier"]

KIB = 1024
PAGE = 4 * KIB
_NEAR_BEST = 0.9


@dataclass(frozen=True)
class Point:
    """One point of a curve."""

    curve: Literal["write_size", "write_size_fsync", "queue_depth"]
    pattern: Literal["read", "write", "randread", "randwrite"]
    block_bytes: int
    queue_depth: int

    @property
    def fsync(self) -> bool:
        """Whether each write is followed by an fsync."""
        return self.curve == "write_size_fsync"

    def __str__(self) -> str:
        """Return it as progress shows it."""
        depth = f" depth {self.queue_depth}" if self.queue_depth > 1 else ""
        return f"{self.pattern} {self.block_bytes // KIB}k{depth}{' fsync' if self.fsync else ''}"


@dataclass(frozen=True)
class Measured:
    """What one window, or the median of several, gave at a point."""

    iops: float
    bytes_per_s: float
    latency_p50_us: float
    fsync_p50_us: float | None


@dataclass(frozen=True)
class Schedule:
    """How much is measured, and for how long."""

    mode: str
    points: tuple[Point, ...]
    file_bytes: int
    window_ms: int
    repeats: int  # rounds over all points, at most
    seconds: float  # no further round is begun that would not end by then


def _schedule_points(
    sizes: Iterable[int], fsync_sizes: Iterable[int], depths: Mapping[str, Iterable[int]]
) -> tuple[Point, ...]:
    return (
        *(Point("write_size", "randwrite", size * KIB, 4) for size in sizes),
        *(Point("write_size_fsync", "randwrite", size * KIB, 1) for size in fsync_sizes),
        *(Point("queue_depth", pattern, PAGE, depth) for pattern, some in depths.items() for depth in some),  # type: ignore[arg-type]
    )


_ALL_DEPTHS = (1, 2, 4, 8, 16, 32, 64)

#: Half a minute: enough to rank devices and to place the preferred write size among powers of two.
QUICK = Schedule(
    "quick",
    _schedule_points(
        (4, 8, 16, 32, 64, 128), (4, 16, 64), {"randread": (1, 4, 16, 32), "read": (1,), "randwrite": (1, 16)}
    ),
    file_bytes=256 << 20,
    window_ms=300,
    repeats=3,
    seconds=38,
)

#: Some ten minutes: every multiple of 4 KiB, all patterns at all depths.
FULL = Schedule(
    "full",
    _schedule_points(
        range(4, 132, 4), range(4, 132, 4), dict.fromkeys(("randread", "randwrite", "read", "write"), _ALL_DEPTHS)
    ),
    file_bytes=2 << 30,
    window_ms=1000,
    repeats=5,
    seconds=600,
)


def measure_point(point: Point, file: FioFile, window_ms: int) -> Measured:
    """Measure one point for one window; ten times longer where a stalled device finished nothing in it.

    Raises FioRefusedError when fio fails, or nothing is finished even then.
    """
    depth, jobs = file.engine.split(point.queue_depth)
    variables = {
        "PATTERN": point.pattern,
        "BLOCK": point.block_bytes,
        "DEPTH": depth,
        "JOBS": jobs,
        "FSYNC": int(point.fsync),
    }
    for window in (window_ms, 10 * window_ms):
        figures = file.run_window("window", window, variables)
        side = figures["read" if point.pattern.endswith("read") else "write"]
        latency, fsync = _median_us(side), _median_us(figures["sync"])
        if latency is not None and (fsync is not None or not point.fsync):
            return Measured(float(side["iops"]), float(side["bw_bytes"]), latency, fsync)
    raise FioRefusedError(f"not one request ({point}) was finished within {10 * window_ms} ms")


def _median_us(figures: Mapping[str, Any]) -> float | None:
    """Return the median latency; fio leaves percentiles out where nothing ran."""
    percentiles = figures["lat_ns"].get("percentile")
    return float(percentiles["50.000000"]) / 1000 if percentiles else None


def merge(windows: list[Measured]) -> Measured:
    """Return the medians of several windows of one point."""
    fsyncs = [window.fsync_p50_us for window in windows if window.fsync_p50_us is not None]
    return Measured(
        iops=median(window.iops for window in windows),
        bytes_per_s=median(window.bytes_per_s for window in windows),
        latency_p50_us=median(window.latency_p50_us for window in windows),
        fsync_p50_us=median(fsyncs) if fsyncs else None,
    )


def choose_knee(curve: Mapping[int, float]) -> int:
    """Return the smallest place of a curve whose value is within 10 % of the best: going on gains little."""
    best = max(curve.values())
    return min(place for place, value in curve.items() if value >= _NEAR_BEST * best)


def rank_tier(tier: Tier, random_read_us: float) -> int:
    """Return the place of a device among the tiers; higher is faster.

    `cloud` says who owns a disk, not how fast it is, so it is placed by its random reads of 4 KiB at depth 1: as slow
    as disks seek (above 3 ms) is 0, network volumes (above 400 us) 1, SATA flash (above 120 us) 2, and NVMe 3.
    """
    fixed: dict[str, int] = {"hdd": 0, "sata_ssd": 2, "nvme_ssd": 3, "memory": 4}
    if tier in fixed:
        return fixed[tier]
    return sum(random_read_us <= limit for limit in (3000, 400, 120))
