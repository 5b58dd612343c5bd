"""The points of a device's curves: how one is measured, and what is read from the measured ones."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from statistics import median
from typing import Any, Literal

from knobscope.specs.models.device import Tier
from knobscope.stages.characterise.fio import FioFile, FioRefusedError

KIB = 1024
PAGE = 4 * KIB
_NEAR_BEST = 0.9
#: Neighbouring depths that differ by less than this are near enough to each other.
_FINE = 1.12

Pattern = Literal["read", "write", "randread", "randwrite"]


@dataclass(frozen=True)
class Point:
    """One point of a curve. `beside`: random reads during a stream of writes, fio's job of that name."""

    curve: Literal["write_size", "commit", "flush", "queue_depth", "beside"]
    pattern: Pattern
    block_bytes: int
    queue_depth: int

    def __str__(self) -> str:
        """Return it as progress shows it."""
        depth = f" depth {self.queue_depth}" if self.queue_depth > 1 else ""
        after = {"commit": " fsync", "flush": " fdatasync", "beside": " together with writes"}.get(self.curve, "")
        return f"{self.pattern} {self.block_bytes // KIB}k{depth}{after}"


@dataclass(frozen=True)
class FlushTimes:
    """How long fsync or fdatasync took."""

    mean_us: float
    p50_us: float
    p99_us: float
    p999_us: float
    count: int


@dataclass(frozen=True)
class Measured:
    """What one window, or the median of several, gave at a point."""

    iops: float
    bytes_per_s: float
    latency_p50_us: float
    latency_p99_us: float
    flush: FlushTimes | None = None


def measure_window(point: Point, file: FioFile, window_ms: int) -> Measured:
    """Measure one point for one window; ten times longer where a stalled device finished nothing in it.

    Raises FioRefusedError when fio fails, or nothing is finished even then.
    """
    depth, jobs = file.engine.split(point.queue_depth)
    # libaio would call fsync while the write is still under way, and count both.
    engine = "psync" if point.curve in ("commit", "flush") else file.engine.name
    variables = {
        "ENGINE": engine,
        "PATTERN": point.pattern,
        "BLOCK": point.block_bytes,
        "DEPTH": depth,
        "JOBS": jobs,
        "FSYNC": int(point.curve == "commit"),
        "FDATASYNC": int(point.curve == "flush"),
    }
    for window in (window_ms, 10 * window_ms):
        figures = file.run_window("beside" if point.curve == "beside" else "window", window, variables)
        side = figures["read" if point.pattern.endswith("read") else "write"]
        flush = _read_flush(figures["sync"])
        if side["lat_ns"].get("percentile") and (flush or point.curve not in ("commit", "flush")):
            # What was in flight when the ramp ended is among fio's bytes, and not among its requests.
            bytes_per_s = float(side["bw_bytes"])
            return _read_side(side, bytes_per_s / point.block_bytes, bytes_per_s, flush)
    raise FioRefusedError(f"not one request ({point}) was finished within {10 * window_ms} ms")


def measure_sustained(point: Point, file: FioFile, window_ms: int, guess: float) -> Measured:
    """Measure what writes cost when the device has to store them: so many as take about one window, and a flush.

    `guess`: bytes per second that are expected; where it was far off, once more with the right amount. Raises
    FioRefusedError when fio fails.
    """
    depth, jobs = file.engine.split(point.queue_depth)
    variables = {"PATTERN": point.pattern, "BLOCK": point.block_bytes, "DEPTH": depth, "JOBS": jobs}
    least = 4 * point.queue_depth
    for _ in range(2):
        requests = max(least, round(guess * window_ms / 1000 / point.block_bytes))
        amount = -(-requests // jobs) * point.block_bytes
        figures = file.run_window("sustained", 20 * window_ms, variables | {"AMOUNT": amount})
        side, seconds = figures["write"], max(1, figures["job_runtime"]) / 1000 / jobs
        guess = side["io_bytes"] / seconds
        if seconds > window_ms / 2000 or requests > 1e6:
            break
    return _read_side(side, guess / point.block_bytes, guess, None)


def _read_side(side: Mapping[str, Any], iops: float, bytes_per_s: float, flush: FlushTimes | None) -> Measured:
    percentiles = side["lat_ns"]["percentile"]
    return Measured(iops, bytes_per_s, percentiles["50.000000"] / 1000, percentiles["99.000000"] / 1000, flush)


def _read_flush(figures: Mapping[str, Any]) -> FlushTimes | None:
    """Return times of flushes; fio leaves percentiles out where nothing ran."""
    times = figures["lat_ns"]
    percentiles = times.get("percentile")
    if not percentiles:
        return None
    p50, p99, p999 = (float(percentiles[f"{share}0000"]) / 1000 for share in ("50.00", "99.00", "99.90"))
    return FlushTimes(float(times["mean"]) / 1000, p50, p99, p999, int(times["N"]))


def merge(windows: list[Measured]) -> Measured:
    """Return the best of several windows of one point: whatever else the machine does only makes a device look slower.

    The rate of the best window counts, and the flushes of the one whose median is shortest.
    """
    best = max(windows, key=lambda window: window.iops)
    flushes = [window.flush for window in windows if window.flush is not None]
    return replace(best, flush=min(flushes, key=lambda flush: flush.p50_us, default=None))


def choose_knee(curve: Mapping[int, float]) -> int:
    """Return the smallest x of a curve whose value is within 10 % of the best: going on gains little."""
    best = max(curve.values())
    return min(x for x, value in curve.items() if value >= _NEAR_BEST * best)


def _cross(curve: Mapping[int, float]) -> tuple[int | None, int, float]:
    """Return the last depth before a curve comes to 90 % of its plateau (None: none), the next one, and that 90 %."""
    best = max(curve.values())
    wanted = _NEAR_BEST * median(value for value in curve.values() if value >= _NEAR_BEST * best)
    after = min(depth for depth, value in curve.items() if value >= wanted)
    before = max((depth for depth in curve if depth < after), default=None)
    return before, after, wanted


def find_saturation(curve: Mapping[int, float]) -> float | None:
    """Return the depth at which a curve of requests per second comes to 90 % of its plateau, between two points too.

    None: it still rises at its end, so nothing is known of a plateau.
    """
    before, after, wanted = _cross(curve)
    if before is None:
        return float(after)
    if after == max(curve) and curve[after] > curve[before] / _NEAR_BEST:
        return None
    return before + (after - before) * (wanted - curve[before]) / (curve[after] - curve[before])


def next_depth(curve: Mapping[int, float]) -> int | None:
    """Return a depth to measure in order to know the one that saturates better; None when it is known."""
    before, after, _ = _cross(curve)
    if before is None or after - before < 2 or after < _FINE * before:
        return None
    return min(max(round(math.sqrt(before * after)), before + 1), after - 1)


def rank_tier(tier: Tier, random_read_us: float) -> int:
    """Return the rank of a device among the tiers; higher is faster.

    `cloud` says who owns a disk, not how fast it is, so it is ranked by its random reads of 4 KiB at depth 1: as slow
    as disks seek (above 3 ms) is 0, network volumes (above 400 us) 1, SATA flash (above 120 us) 2, and NVMe 3.
    """
    fixed: dict[str, int] = {"hdd": 0, "sata_ssd": 2, "nvme_ssd": 3, "memory": 4}
    if tier in fixed:
        return fixed[tier]
    return sum(random_read_us <= limit for limit in (3000, 400, 120))
