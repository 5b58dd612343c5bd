"""Section "Devices": what each device likes, measured without a DBMS."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

from markupsafe import Markup

from knobscope.figures import Curve, Figure, Mark, draw_loglog, slug
from knobscope.specs import Device
from knobscope.specs.checks.emulation_limits import describe_limits
from knobscope.stages.measure.machine import describe_machine
from knobscope.stages.report.sections.html_table import NUMBER, TEXT, Cells, render_table
from knobscope.study_data.study import Row, Rows, StudyData
from knobscope.text.formats import (
    UNKNOWN,
    format_count,
    format_fold,
    format_micros,
    format_number,
    format_rate,
    format_size,
    format_time,
)

_PATTERN_LOOKS = {
    "read": ("sequential read", "line-a"),
    "randread": ("random read", "line-a dashed"),
    "write": ("sequential write", "line-b"),
    "randwrite": ("random write", "line-b dashed"),
}
_PROPERTIES = (
    ("Property", TEXT),
    ("Measured", NUMBER),
    ("Confidence", TEXT),
    ("Reason", TEXT),
    ("The kernel says", TEXT),
)
#: Properties whose names in tables are no good labels.
_LABELS = {"reads_beside_writes": "Read latency during writes"}


@dataclass(frozen=True)
class DeviceView:
    """A device: its measured figures and curves; `properties`: how sure they are, and what the kernel says."""

    name: str
    description: str
    facts: list[tuple[str, str, str]]  # name, value, what it means
    properties: Markup
    pictures: list[Figure]


@dataclass(frozen=True)
class DevicesSection:
    """All devices of the study; `empty` says why there are none."""

    devices: list[DeviceView]
    empty: str = ""


def build_devices(data: StudyData) -> DevicesSection:
    """Return the section from tables `device_profile` and `device_curve`."""
    profiles = data.rows("SELECT * FROM device_profile ORDER BY tier_rank DESC, device")
    if not profiles:
        return DevicesSection(
            [], "The database holds no device profile; `knobscope characterise` measures them with fio."
        )
    return DevicesSection([_view(data, profile) for profile in profiles])


def _view(data: StudyData, profile: Row) -> DeviceView:
    spec = data.specs.devices.get(profile["device"])
    curves = data.rows(
        "SELECT * FROM device_curve WHERE device = ? ORDER BY curve, pattern, block_bytes, queue_depth",
        profile["device"],
    )
    pictures = [_write_sizes(profile, curves), _write_units(profile, curves), _queue_depths(profile, curves)]
    properties = data.rows("SELECT * FROM device_property WHERE device = ?", profile["device"])
    return DeviceView(
        name=profile["device"],
        description=spec.description if spec else "",
        facts=[*_facts(profile), *(_limits(spec) if spec and _is_here(data) else [])],
        properties=render_table(_PROPERTIES, _list_properties(properties)),
        pictures=[picture for picture in pictures if picture is not None],
    )


def _facts(profile: Row) -> list[tuple[str, str, str]]:
    single_iops, best = profile["random_read_iops_qd1"], profile["random_read_iops_best"]
    gain = f", {format_fold(math.log(best / single_iops))} as many" if single_iops and best else ""
    gap = profile["random_sequential_ratio"]
    return [
        ("Tier", profile["tier"] or UNKNOWN, ""),
        ("Block device", profile["block_device"] or UNKNOWN, f"file system {profile['filesystem'] or 'unknown'}"),
        (
            "Preferred write size",
            format_size(profile["preferred_write_bytes"]),
            "the write unit" if profile["write_unit_bytes"] else "the smallest within 10 % of the best MB/s",
        ),
        ("Commits", format_rate(profile["fsync_rate"], "/s"), "4 KiB writes, each with fsync, one at a time"),
        ("One fsync", format_micros(profile["fsync_p50_us"]), "median"),
        ("Random reads, one at a time", format_rate(single_iops, "IOPS"), "4 KiB"),
        (
            "Random reads, at best",
            format_rate(best, "IOPS"),
            f"from depth {format_count(profile['best_queue_depth'])} on{gain}",
        ),
        (
            "Random against sequential",
            f"{format_number(gap)}x" if gap else UNKNOWN,
            "4 KiB reads at depth 1; 1x: no gap",
        ),
        ("Measured", format_time(profile["measured_at"]), ""),
    ]


def _list_properties(properties: Rows) -> Iterator[Cells]:
    """Yield a row for each property; what several rest on, and what others did meanwhile, is said in full once."""
    said: dict[str, str] = {}  # reason -> the property that it is said of
    has_said = False
    for row in properties:
        name = _LABELS.get(row["property"], row["property"].replace("_", " ").capitalize())
        others = "the machine was busy, as above" if row["others"] and has_said else row["others"]
        reason = f"as for {said[row['because']]}" if row["because"] in said else row["because"]
        yield name, _show_value(row), row["confidence"], "; ".join(filter(None, [reason, others])), row["kernel"] or ""
        said.setdefault(row["because"], name)
        has_said = has_said or bool(row["others"])


def _show_value(row: Row) -> str:
    if row["value"] is None:
        return UNKNOWN if row["confidence"] == "not measured" else "none found"
    formats = {"bytes": format_size, "us": format_micros}
    shown = formats.get(row["unit"], format_number)(row["value"])
    return shown + {"ratio": "x"}.get(row["unit"], "")


def _limits(device: Device) -> list[tuple[str, str, str]]:
    """Say what of a modelled device could not be emulated: it was slower there than it should have been."""
    return [("Not as modelled", text, "on the machine of this report") for text in describe_limits(device)]


def _is_here(data: StudyData) -> bool:
    """Whether all runs were measured on the machine that draws the report."""
    return not data.value("SELECT count(*) FROM runs WHERE machine IS DISTINCT FROM ?", describe_machine())


def _write_sizes(profile: Row, rows: Rows) -> Figure | None:
    curves, table = [], []
    for curve, name, look in (("write_size", "sustained", "line-b"), ("write_size_durable", "durable", "line-c")):
        curve_rows = [row for row in rows if row["curve"] == curve and row["bytes_per_s"] and not row["shift_bytes"]]
        table += curve_rows
        if curve_rows:
            curves.append(Curve(name, look, [(row["block_bytes"], row["bytes_per_s"] / 1e6) for row in curve_rows]))
    if not curves:
        return None
    preferred = profile["preferred_write_bytes"]
    mark = Mark(float(preferred), f"preferred: {format_size(preferred)}") if preferred else None
    return Figure(
        name=slug("device", profile["device"], "write-size"),
        title="Write size",
        description="Throughput of random writes by size: four at a time, and one at a time, each durable before "
        "the next; " + (f"preferred size {format_size(preferred)}." if preferred else "no size is preferred."),
        draw=lambda width: draw_loglog(width, curves, "size of a write", "MB/s", sizes=True, mark=mark),
        data=table,
        query=rows.query,
    )


def _write_units(profile: Row, rows: Rows) -> Figure | None:
    curves, table = [], []
    for curve, shifted, name, look in (
        ("write_size_durable", False, "durable", "line-c"),
        ("write_size_durable", True, "shifted", "line-c dashed"),
        ("write_size_alone", False, "not durable", "line-b"),
        ("write_size_alone", True, "shifted", "line-b dashed"),
    ):
        of_curve = [row for row in rows if row["curve"] == curve and bool(row["shift_bytes"]) == shifted]
        curve_rows = [row for row in of_curve if row["latency_p50_us"] is not None]
        table += curve_rows
        if curve_rows:
            curves.append(Curve(name, look, [(row["block_bytes"], row["latency_p50_us"] / 1000) for row in curve_rows]))
    if not curves:
        return None
    unit = profile["write_unit_bytes"]
    return Figure(
        name=slug("device", profile["device"], "write-unit"),
        title="Write unit",
        description="Median time of one write by size, at multiples of its size and shifted by 4 KiB; "
        + (f"write unit {format_size(unit)}." if unit else "no write unit was found."),
        draw=lambda width: draw_loglog(
            width,
            curves,
            "size of a write",
            "ms",
            sizes=True,
            mark=Mark(float(unit), f"unit: {format_size(unit)}") if unit else None,
        ),
        data=table,
        query=rows.query,
    )


def _queue_depths(profile: Row, rows: Rows) -> Figure | None:
    curves, table = [], []
    for pattern, (name, look) in _PATTERN_LOOKS.items():
        curve_rows = [
            row for row in rows if row["curve"] == "queue_depth" and row["pattern"] == pattern and row["iops"]
        ]
        table += curve_rows
        if curve_rows:
            curves.append(Curve(name, look, [(row["queue_depth"], row["iops"]) for row in curve_rows]))
    if not curves:
        return None
    return Figure(
        name=slug("device", profile["device"], "queue-depth"),
        title="Queue depth and order",
        description=f"4 KiB requests per second by queue depth. Best random reads from depth "
        f"{format_count(profile['best_queue_depth'])} on.",
        draw=lambda width: draw_loglog(width, curves, "requests in flight", "IOPS, 4 KiB"),
        data=table,
        query=rows.query,
    )
