"""A diagnosis as one HTML page that loads nothing from elsewhere, in the look of the report."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.commands.attach.diagnosis import Diagnosis
from knobscope.figures import (
    Curve,
    Figure,
    Sizes,
    bucket_points,
    depth_bins,
    draw_depths,
    draw_latencies,
    draw_series,
    draw_sizes,
    measure_intervals,
    with_pauses,
)
from knobscope.stages.report.page import make_environment
from knobscope.text.formats import format_decimals, format_micros, format_share, format_size

_MOST_FILES = 30
_LOOKS = {"read": "line-a", "write": "line-b", "flush": "line-c", "discard": "line-d"}

Rows = Sequence[Mapping[str, Any]]


def render_page(diagnosis: Diagnosis) -> str:
    """Return the page; the conclusion comes first."""
    environment = make_environment("knobscope.commands.attach")
    environment.filters |= {
        "share": format_share,
        "size": format_size,
        "micros": format_micros,
        "decimals": format_decimals,
    }
    figures = [_draw_series(diagnosis), _draw_sizes(diagnosis), _draw_depth(diagnosis), _draw_latencies(diagnosis)]
    return environment.get_template("page.html.j2").render(
        diagnosis=diagnosis,
        files=diagnosis.files[:_MOST_FILES],
        figures=[figure for figure in figures if figure is not None],
    )


def _draw_series(diagnosis: Diagnosis) -> Figure | None:
    rows: Rows = diagnosis.profile["series"]
    times = sorted({row["t_s"] for row in rows})
    if len(times) < 2:
        return None
    step, length = measure_intervals(times)
    end = diagnosis.facts.seconds
    by_op = {
        op: [(row["t_s"], row["bytes"] / length[row["t_s"]] / 1e6) for row in rows if row["op"] == op]
        for op in ("read", "write")
    }
    depths = sorted({(row["t_s"], row["depth"] or 0.0) for row in rows})
    panels = [
        (
            "MB/s of the server",
            [Curve(op, _LOOKS[op], with_pauses(points, step, end)) for op, points in by_op.items() if points],
        ),
        ("requests in flight at the device", [Curve("depth", "line-d", with_pauses(depths, step, end))]),
    ]
    return Figure(
        name="series",
        title="The window over time",
        description="Traffic of the server and depth of the device over the window.",
        draw=lambda width: draw_series(width, [panel for panel in panels if panel[1]]),
        data=rows,
        wide=True,
    )


def _draw_sizes(diagnosis: Diagnosis) -> Figure | None:
    rows: Rows = diagnosis.profile["io_sizes"]
    panels = [
        Sizes(f"{op}s", {row["bytes"]: row["requests"] for row in rows if row["op"] == op})
        for op in ("read", "write")
        if any(row["op"] == op for row in rows)
    ]
    if not panels:
        return None
    return Figure(
        name="sizes",
        title="Sizes of the server's requests",
        description="Shares of bytes and of requests by size.",
        draw=lambda width: draw_sizes(width, panels, label="requests"),
        data=rows,
    )


def _draw_depth(diagnosis: Diagnosis) -> Figure | None:
    rows: Rows = [row for row in diagnosis.profile["queue_depth"] if row["queue"] == -1]
    times = {row["depth"]: row["time_ns"] for row in rows}
    if not any(depth for depth in times):
        return None
    name = f"device (busy {format_share(diagnosis.facts.busy_share)})"
    return Figure(
        name="depth",
        title="Requests in flight, by share of busy time",
        description="Time-weighted queue depth of the device.",
        draw=lambda width: draw_depths(width, [("base-bar", name, depth_bins(times))]),
        data=rows,
    )


def _draw_latencies(diagnosis: Diagnosis) -> Figure | None:
    rows: Rows = [row for row in diagnosis.profile["io_latency"] if row["requests"]]
    totals = {op: sum(row["requests"] for row in rows if row["op"] == op) for op in _LOOKS}
    curves = [
        Curve(
            op,
            look,
            bucket_points(
                (row["low_us"], row["high_us"], row["requests"] / totals[op]) for row in rows if row["op"] == op
            ),
        )
        for op, look in _LOOKS.items()
        if totals[op]
    ]
    if not curves:
        return None
    return Figure(
        name="latency",
        title="Latency at the device",
        description="Histogram of request latency.",
        draw=lambda width: draw_latencies(width, curves, "from issue to completion"),
        data=rows,
    )
