"""The profile of a device: what it prefers, from curves that fio measured."""

import time
from datetime import UTC, datetime
from typing import Any, Literal

from knobscope.characterise.curves import (
    FULL,
    PAGE,
    QUICK,
    Measured,
    Point,
    Schedule,
    choose_knee,
    measure_point,
    merge,
    rank_tier,
)
from knobscope.characterise.fio import FioFile, FioRefusedError, lay_out_file
from knobscope.characterise.progress import Countdown
from knobscope.devices import OpenDevice
from knobscope.errors import UserError

__all__ = ["Mode", "characterise_device", "measure_profile"]

Mode = Literal["quick", "full"]

_SCHEDULES: dict[Mode, Schedule] = {"quick": QUICK, "full": FULL}


def characterise_device(opened: OpenDevice, mode: Mode) -> dict[str, Any]:
    """Measure a device and return its profile.

    Its keys are the columns of `device_profile`, `curves` (rows of `device_curve`) and `method` (how it was measured).
    `quick` takes about half a minute, `full` about ten. The caller holds the device's lock. Raises UserError when fio
    is missing or cannot use the device.
    """
    return measure_profile(opened, _SCHEDULES[mode])


def measure_profile(opened: OpenDevice, schedule: Schedule) -> dict[str, Any]:
    """Measure all points of a schedule, round by round, and return the profile."""
    begin = time.monotonic()
    with lay_out_file(opened, schedule.file_bytes) as file:
        try:
            rounds = _measure_rounds(opened.name, file, schedule, begin)
        except FioRefusedError as error:
            raise UserError(f"device {opened.name}: fio failed in the middle of measuring: {error}") from error
        method = {
            "mode": schedule.mode,
            "fio": file.version,
            "engine": file.engine.name,
            "direct_io": file.engine.direct,
            "file_bytes": file.bytes,
            "window_ms": schedule.window_ms,
            "rounds": len(rounds),
        }
    curves = {point: merge([measured[point] for measured in rounds]) for point in schedule.points}
    method["seconds"] = round(time.monotonic() - begin, 1)
    return {
        **_identify(opened),
        **_summarise(opened, curves),
        "method": method,
        "curves": [_row(opened.name, point, measured) for point, measured in curves.items()],
    }


def _measure_rounds(name: str, file: FioFile, schedule: Schedule, begin: float) -> list[dict[Point, Measured]]:
    """Measure all points again and again, every other round backwards: drift of the machine then meets all alike."""
    rounds: list[dict[Point, Measured]] = []
    countdown = Countdown(f"characterise {name}", len(schedule.points) * schedule.repeats)
    for number in range(schedule.repeats):
        if rounds and (time.monotonic() - begin) * (number + 1) / number > schedule.seconds:
            break
        measured = {}
        for point in schedule.points[:: -1 if number % 2 else 1]:
            countdown.show(str(point))
            measured[point] = measure_point(point, file, schedule.window_ms)
        rounds.append(measured)
    return rounds


def _identify(opened: OpenDevice) -> dict[str, Any]:
    return {
        "device": opened.name,
        "tier": opened.tier,
        "block_device": opened.block.name,
        "filesystem": opened.filesystem,
        "measured_at": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds"),
    }


def _summarise(opened: OpenDevice, curves: dict[Point, Measured]) -> dict[str, Any]:
    sizes = {point.block_bytes: one.bytes_per_s for point, one in curves.items() if point.curve == "write_size"}
    reads = {point.queue_depth: one.iops for point, one in curves.items() if point.pattern == "randread"}
    commit = curves[Point("write_size_fsync", "randwrite", PAGE, 1)]
    random_read = curves[Point("queue_depth", "randread", PAGE, 1)]
    sequential_read = curves[Point("queue_depth", "read", PAGE, 1)]
    return {
        "tier_rank": rank_tier(opened.tier, random_read.latency_p50_us),
        "preferred_write_bytes": choose_knee(sizes),
        "fsync_rate": commit.iops,
        "fsync_p50_us": commit.fsync_p50_us,
        "random_read_iops_qd1": random_read.iops,
        "random_read_iops_best": max(reads.values()),
        "best_queue_depth": choose_knee(reads),
        "random_sequential_ratio": random_read.iops / sequential_read.iops,
    }


def _row(device: str, point: Point, measured: Measured) -> dict[str, Any]:
    return {
        "device": device,
        "curve": point.curve,
        "pattern": point.pattern,
        "block_bytes": point.block_bytes,
        "queue_depth": point.queue_depth,
        "iops": measured.iops,
        "bytes_per_s": measured.bytes_per_s,
        "latency_p50_us": measured.latency_p50_us,
    }
