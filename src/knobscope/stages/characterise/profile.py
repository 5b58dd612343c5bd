"""The profile of a device: what it prefers, from curves that fio measured."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Literal

from knobscope.devices import OpenDevice, identify_block, open_locked
from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import Device
from knobscope.stages.characterise.curves import PAGE, Measured, Point, choose_knee, find_saturation, rank_tier
from knobscope.stages.characterise.fio import FioRefusedError, lay_out_file
from knobscope.stages.characterise.kernel import read_kernel_facts
from knobscope.stages.characterise.others import mean_of
from knobscope.stages.characterise.properties import find_preferred_size, find_ratios, list_properties
from knobscope.stages.characterise.schedule import FULL, QUICK, Schedule
from knobscope.stages.characterise.session import Session
from knobscope.stages.characterise.unit import TimedWrite
from knobscope.tables.devices import DeviceCurveRow, DeviceProfile, DeviceProfileRow

Mode = Literal["quick", "full"]

_SCHEDULES: dict[Mode, Schedule] = {"quick": QUICK, "full": FULL}


def write_profile(device: Device, root: Path, owner: str, mode: Mode, out: Path) -> DeviceProfile:
    """Measure a device and write its profile; `owner` names the scratch directory. Errors as in characterise_device."""
    with open_locked([device], root, owner) as (opened,):
        profile = characterise_device(opened, mode)
    write_sealed(out, profile)
    return profile


def characterise_device(opened: OpenDevice, mode: Mode) -> DeviceProfile:
    """Measure a device and return its profile.

    `quick` takes less than a minute. The caller holds the
    device's lock. Raises UserError when fio is missing or cannot use the device.
    """
    return measure_profile(opened, _SCHEDULES[mode])


def measure_profile(opened: OpenDevice, schedule: Schedule) -> DeviceProfile:
    """Measure all that a schedule names, and return the profile."""
    begin = time.monotonic()
    with lay_out_file(opened, schedule.file_bytes) as file:
        session = Session(opened, file, schedule)
        try:
            session.run()
        except FioRefusedError as error:
            raise UserError(f"device {opened.name}: fio failed in the middle of measuring: {error}") from error
        method = {
            "mode": schedule.mode,
            "fio": file.version,
            "engine": file.engine.name,
            "direct_io": file.engine.direct,
            "file_bytes": file.bytes,
            "window_ms": session.window_ms,
            "rounds": session.repeats,
            "knows_addresses": session.knows_addresses,
            "others": asdict(mean_of([pause for pauses in session.others.values() for pause in pauses])),
            "seconds": round(time.monotonic() - begin, 1),
        }
    kernel = read_kernel_facts(opened.block)
    properties = list_properties(session, kernel)
    curves = session.merged()
    return {
        **_summarise(opened, curves, {row["property"]: row["value"] for row in properties}),
        "block_identity": identify_block(opened.block),
        "method": method,
        "properties": [{"device": opened.name, **row} for row in properties],
        "curves": [
            *(_row(opened.name, point, measured) for point, measured in curves.items()),
            *_rows_of_writes(opened.name, "write_size_durable", session.durable),
            *_rows_of_writes(opened.name, "write_size_alone", session.plain),
        ],
    }


def _summarise(
    opened: OpenDevice, curves: dict[Point, Measured], properties: Mapping[str, float | None]
) -> DeviceProfileRow:
    reads = {p.queue_depth: m.iops for p, m in curves.items() if (p.curve, p.pattern) == ("queue_depth", "randread")}
    commit, flush = curves[Point("commit", "randwrite", PAGE, 1)], curves[Point("flush", "randwrite", PAGE, 1)]
    writes = find_ratios(curves, "randwrite", "write")
    unit = properties["write_unit"]
    unit_bytes = None if unit is None else int(unit)
    return {
        "device": opened.name,
        "tier": opened.tier,
        "block_device": opened.block.name,
        "filesystem": opened.filesystem,
        "measured_at": datetime.now(UTC).replace(tzinfo=None).isoformat(timespec="seconds"),
        "tier_rank": rank_tier(opened.tier, curves[Point("queue_depth", "randread", PAGE, 1)].latency_p50_us),
        "preferred_write_bytes": unit_bytes or find_preferred_size(curves),
        "write_unit_bytes": unit_bytes,
        "write_unit_us": properties["write_unit_cost"],
        "fsync_rate": commit.iops,
        "fsync_p50_us": commit.flush.p50_us if commit.flush else None,
        "flush_p50_us": properties["flush"],
        "flush_p99_us": flush.flush.p99_us if flush.flush else None,
        "random_read_iops_qd1": reads[1],
        "random_read_iops_best": max(reads.values()),
        "best_queue_depth": choose_knee(reads),
        "saturating_depth": find_saturation(reads),
        "random_sequential_ratio": find_ratios(curves, "randread", "read")[1],
        "random_sequential_write_ratio": writes[max(writes)],
        "reads_beside_writes_ratio": properties["reads_beside_writes"],
    }


def _row(device: str, point: Point, measured: Measured) -> DeviceCurveRow:
    return {
        "device": device,
        "curve": point.curve,
        "pattern": point.pattern,
        "block_bytes": point.block_bytes,
        "queue_depth": point.queue_depth,
        "shift_bytes": 0,
        "iops": measured.iops,
        "bytes_per_s": measured.bytes_per_s,
        "latency_p50_us": measured.latency_p50_us,
        "latency_p99_us": measured.latency_p99_us,
    }


def _rows_of_writes(device: str, curve: str, writes: Sequence[TimedWrite]) -> list[DeviceCurveRow]:
    """Return a row per size, at multiples of it and shifted: medians of single writes."""
    kinds: dict[tuple[int, int], list[float]] = {}
    for write in writes:
        kinds.setdefault((write.size, write.address % write.size), []).append(write.ns / 1000)
    return [
        {
            "device": device,
            "curve": curve,
            "pattern": "randwrite",
            "block_bytes": size,
            "queue_depth": 1,
            "shift_bytes": shift,
            "iops": 1e6 / median(times),
            "bytes_per_s": size * 1e6 / median(times),
            "latency_p50_us": median(times),
            "latency_p99_us": None,
        }
        for (size, shift), times in sorted(kinds.items())
    ]
