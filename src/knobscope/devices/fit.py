"""Fits a device model to published figures of a drive: bandwidth and IOPS at saturation, as iocost-benchmarks has them.

Each figure determines one parameter: random reads the number of channels, sequential reads of 4 KiB their latency,
read bandwidth the bus, write bandwidth and sequential writes of 4 KiB the drain and its cost per write, random writes
theirs. What the figures do not tell (latency at depth one, cache, flush) is a value typical of the tier, and named so.
"""

import re
import statistics
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from knobscope.cells import Problems, TextTable, read_numbers, read_text_table
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
_LONGEST_NAME = 40
#: No drive does more in a second.
_MOST_BYTES, _MOST_REQUESTS = 1e12, 1e8
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
    problems = Problems()
    table = _read_table(file, problems)
    models = table.columns["model"]
    if drive not in models.texts:
        raise UserError(f"{file} has no drive {drive!r}; expected {suggest(drive, sorted(models.texts))}")
    rows = np.flatnonzero(np.asarray(models.codes) == models.texts.index(drive)).tolist()
    values = {column: statistics.median(_numbers(table, rows, column, problems)) for column in _COLUMNS}
    problems.raise_if_any()
    device = table.columns.get("dev")
    is_sata = device is not None and device.texts[device.codes[rows[0]]].startswith("sd")
    return Figures(drive, "sata_ssd" if is_sata else "nvme_ssd", len(rows), **values)


def _read_table(file: Path, problems: Problems) -> TextTable:
    table = read_text_table(file, problems)
    for name in ("model", *_COLUMNS):
        if table is not None and name not in table.columns:
            problems.add_column(file, name, "no such column", "this column, which is required")
    if table is not None and not len(table):
        problems.add_column(file, "", "a header and no rows", "a row per measurement of a drive")
    problems.raise_if_any()
    assert table is not None  # noqa: S101 - that would be a problem
    return table


def _numbers(table: TextTable, rows: Sequence[int], name: str, problems: Problems) -> Iterator[float]:
    """Yield the figures of a column in some rows, 0 for what is noted as a problem."""
    column, most = table.columns[name], _MOST_BYTES if name.endswith("bps") else _MOST_REQUESTS
    for row in rows:
        text = column.texts[column.codes[row]]
        value = read_numbers([text]).values.get(text, 0)
        if not 1 <= value <= most:
            problems.add(table.path, table.lines[row], name, repr(text), f"a number from 1 to {most:,.0f}")
        yield float(value)


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
    name = re.sub(r"[^a-z0-9]", "-", figures.drive.lower())[:_LONGEST_NAME].strip("-")
    return Device(
        name=name if name[:1].isalpha() else f"drive-{name}".strip("-"),
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
