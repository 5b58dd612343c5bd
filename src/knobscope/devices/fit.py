"""Fits a device model to published figures of a drive: bandwidth and IOPS at saturation, as iocost-benchmarks has them.

Each figure determines one parameter: random reads the number of channels, sequential reads of 4 KiB their latency,
read bandwidth the bus, write bandwidth and sequential writes of 4 KiB the drain and its cost per write, random writes
theirs. What the figures do not tell (latency at depth one, cache, flush) is a value typical of the tier, and named so.
"""

import csv
import statistics
from dataclasses import dataclass
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.models.device import Device, Emulation
from knobscope.specs.models.device_figures import (
    PAGE,
    SEQUENTIAL,
    random_read_iops,
    random_write_iops,
    sequential_read_rate,
    sequential_write_rate,
)
from knobscope.specs.models.device_model import FlashModel
from knobscope.specs.models.quantity import Duration, Rate, Size
from knobscope.specs.reading.base import suggest

_COLUMNS = ("rbps", "rrandiops", "rseqiops", "wbps", "wrandiops", "wseqiops")
#: Typical of the tier: read and write latency in us at depth one, flush. No figure of the table tells them.
_TYPICAL = {"nvme_ssd": (80.0, 20.0, Duration("1.5ms")), "sata_ssd": (110.0, 40.0, Duration("1.2ms"))}
#: Enough requests under way to reach what a figure was measured at.
_SATURATED = 4096


@dataclass(frozen=True)
class Figures:
    """Figures of one drive: bytes per second, and requests of 4 KiB per second; medians when it was measured often."""

    drive: str
    tier: str
    rows: int
    rbps: float
    rrandiops: float
    rseqiops: float
    wbps: float
    wrandiops: float
    wseqiops: float


@dataclass(frozen=True)
class Misfit:
    """A figure that the fitted model does not reach."""

    figure: str
    wanted: float
    reached: float


def read_figures(file: Path, drive: str) -> Figures:
    """Return the figures of a drive from a table with the columns of iocost-benchmarks; raises UserError."""
    rows = _read_rows(file)
    chosen = [(line, row) for line, row in enumerate(rows, start=2) if row["model"] == drive]
    if not chosen:
        drives = sorted({row["model"] for row in rows})
        raise UserError(f"{file} has no drive {drive!r}; expected {suggest(drive, drives)}")
    values = {
        column: statistics.median(_number(file, line, row, column) for line, row in chosen) for column in _COLUMNS
    }
    is_sata = (chosen[0][1].get("dev") or "nvme").startswith("sd")
    return Figures(drive, "sata_ssd" if is_sata else "nvme_ssd", len(chosen), **values)


def known_drives(file: Path) -> list[str]:
    """Return the drives of such a table, sorted."""
    return sorted({row["model"] for row in _read_rows(file)})


def _read_rows(file: Path) -> list[dict[str, str]]:
    try:
        with file.open(newline="", encoding="utf-8") as lines:
            rows = list(csv.DictReader(lines))
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise UserError(f"cannot read {file}: {error}") from error
    missing = [column for column in ("model", *_COLUMNS) if not rows or column not in rows[0]]
    if missing:
        raise UserError(f"{file}:1: columns {', '.join(missing)} are missing; expected model, {', '.join(_COLUMNS)}")
    return rows


def _number(file: Path, line: int, row: dict[str, str], column: str) -> float:
    try:
        value = float(row[column])
    except (TypeError, ValueError):
        value = 0
    if not value > 0:
        raise UserError(f"{file}:{line}: {column}: found {row[column]!r}; expected a number above 0")
    return value


def fit_model(figures: Figures) -> FlashModel:
    """Return the model of a drive."""
    read_us, write_us, flush = _TYPICAL[figures.tier]
    channels = max(1, round(figures.rrandiops * read_us / 1e6))
    drain, sequential_s = _fit_drain(figures)
    random_s = max(0.0, 1 / figures.wrandiops - PAGE / drain)
    return FlashModel(
        kind="flash",
        channels=channels,
        read=Duration.of_ns(channels / figures.rrandiops * 1e9),
        sequential_read=Duration.of_ns(channels / figures.rseqiops * 1e9),
        bus=Rate.of_bytes(figures.rbps),
        write_bus=Rate.of_bytes(max(figures.rbps, figures.wbps)) if figures.tier == "nvme_ssd" else None,
        write=Duration.of_ns(write_us * 1e3),
        cache=Size("64MiB"),
        drain=Rate.of_bytes(drain),
        random_write=Duration.of_ns(random_s * 1e9),
        sequential_write=Duration.of_ns(sequential_s * 1e9),
        flush=flush,
    )


def _fit_drain(figures: Figures) -> tuple[float, float]:
    """Return rate and cost per write with which writes of 4 KiB and of 128 KiB come to the published figures."""
    large_s, small_s = SEQUENTIAL / figures.wbps, 1 / figures.wseqiops
    if large_s <= small_s:  # no such model: bandwidth counts for more than small sequential writes
        return figures.wbps, 0.0
    drain = (SEQUENTIAL - PAGE) / (large_s - small_s)
    overhead = small_s - PAGE / drain
    return (drain, overhead) if overhead > 0 else (figures.wbps, 0.0)


def fit_device(figures: Figures, source: str) -> Device:
    """Return a device with the model of a drive, named after it."""
    count = f", medians of {figures.rows} measurements" if figures.rows > 1 else ""
    name = "".join(letter if letter.isalnum() else "-" for letter in figures.drive.lower()).strip("-")
    return Device(
        name=name if name[0].isalpha() else f"drive-{name}",
        description=f"a model of {figures.drive}, fitted to its saturated IOPS and bandwidth",
        tier="sata_ssd" if figures.tier == "sata_ssd" else "nvme_ssd",
        emulate=Emulation(size=Size("2GiB"), model=fit_model(figures)),
        source=[f"{source}: {figures.drive}{count}"],
    )


def find_misfits(figures: Figures, model: FlashModel, tolerance: float = 0.02) -> list[Misfit]:
    """Return the figures that the model misses by more than a share: they contradict each other in such a model."""
    reached = {
        "rbps": sequential_read_rate(model, depth=_SATURATED),
        "rrandiops": random_read_iops(model, _SATURATED),
        "rseqiops": sequential_read_rate(model, PAGE, _SATURATED) / PAGE,
        "wbps": sequential_write_rate(model, depth=_SATURATED),
        "wrandiops": random_write_iops(model, _SATURATED),
        "wseqiops": sequential_write_rate(model, PAGE, _SATURATED) / PAGE,
    }
    wanted = {column: float(getattr(figures, column)) for column in _COLUMNS}
    return [
        Misfit(column, wanted[column], value)
        for column, value in reached.items()
        if value is not None and abs(value / wanted[column] - 1) > tolerance
    ]
