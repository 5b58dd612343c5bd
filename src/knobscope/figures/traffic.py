"""Where I/O goes: bytes by table or kind of file, single requests over time, and what was in flight meanwhile."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.figures.axes import LEGEND_LINE, Frame, draw_legend, draw_x_axis, draw_y_axis, wrap_legend
from knobscope.figures.canvas import Canvas, Point, fit_text, text_width
from knobscope.figures.scales import Scale, linear_ticks, short_number
from knobscope.text.formats import format_number, format_size

#: Operation -> its look in all pictures.
OP_LOOKS = {"read": "line-a", "write": "line-b", "flush": "line-c", "discard": "plain"}
_DIRECTIONS = ("read", "write")
_BAR = 15


@dataclass(frozen=True)
class FileSizes:
    """A table or a kind of file, with the bytes of a run by operation (`read`, `write`)."""

    name: str
    note: str
    sizes: Mapping[str, float]


def draw_file_sizes(width: float, files: Sequence[FileSizes]) -> Canvas:
    """Draw a bar for the reads and one for the writes of each file, on one axis; what did not occur has no bar."""
    shown = [(file, [op for op in _DIRECTIONS if file.sizes.get(op)]) for file in files]
    row_heights = [_BAR * max(len(ops), 1) + 14 for _, ops in shown]
    labels = min(0.36 * width, max(text_width(text) for file in files for text in (file.name, file.note)) + 16)
    canvas = Canvas(width, 26 + sum(row_heights) + 22)
    frame = Frame(labels, 26, width - 74, 26 + sum(row_heights))
    draw_legend(canvas, 0, 12, [(f"bar {OP_LOOKS[op]}", f"{op}s") for op in _DIRECTIONS])
    highest = max((size for file in files for size in file.sizes.values()), default=1.0)
    scale = Scale(0, max(highest, 1.0), frame.left, frame.right)
    ticks = [(scale(tick), format_size(tick)) for tick in _size_ticks(scale.high, int(frame.width / 90))]
    draw_x_axis(canvas, frame, ticks, grid=True)
    y = frame.top
    for (file, ops), height in zip(shown, row_heights, strict=True):
        canvas.text(0, y + height / 2 + (0 if file.note else 4), fit_text(file.name, labels), "name")
        if file.note:
            canvas.text(0, y + height / 2 + 13, fit_text(file.note, labels), "tick")
        for index, op in enumerate(ops):
            top, end = y + 7 + _BAR * index, scale(file.sizes[op])
            size_text = format_size(file.sizes[op])
            tip = f"{file.name}: {op}s of {size_text}"
            canvas.rect(frame.left, top, max(end - frame.left, 1.5), _BAR - 2, f"bar {OP_LOOKS[op]}", tip)
            canvas.text(end + 5, top + _BAR - 4, size_text, "value")
        y += height
    return canvas


def _size_ticks(highest: float, most: int) -> list[float]:
    """Return round sizes in binary units from 0 on."""
    unit = 1.0
    while highest / unit >= 1024:
        unit *= 1024
    return [tick * unit for tick in linear_ticks(0, highest / unit, max(most, 2))]


@dataclass(frozen=True)
class PointGroup:
    """Requests that look alike, as (second of the run, byte in the file or on the device)."""

    name: str
    look: str
    points: Sequence[Point]


@dataclass(frozen=True)
class PointPanel:
    """Requests of one file, up to the byte `top`; the first groups are drawn first."""

    label: str
    groups: Sequence[PointGroup]
    top: float


def draw_scatter(width: float, panels: Sequence[PointPanel], seconds: float) -> Canvas:
    """Draw requests as points in panels, one above the other, over the same seconds.

    Names of groups are below the picture, in lines of their own where they are long.
    """
    looks = {group.name: f"bar {group.look}" for panel in panels for group in panel.groups}
    lines = wrap_legend([(look, name) for name, look in looks.items()], width)
    each = 154 if len(panels) == 1 else 100
    bottom = (each + 32) * len(panels) - 10
    canvas = Canvas(width, bottom + 44 + LEGEND_LINE * len(lines))
    x = Scale(0, max(seconds, 1e-3), 60, width - 8)
    x_ticks = [(x(tick), short_number(tick)) for tick in linear_ticks(0, x.high, 6)]
    for index, panel in enumerate(panels):
        top = 22 + (each + 32) * index
        frame = Frame(58, top, width - 8, top + each)
        y = Scale(0, max(panel.top, 1.0), frame.bottom - 2, frame.top)
        y_ticks = [(y(tick), format_size(tick)) for tick in _size_ticks(y.high, 4)]
        draw_y_axis(canvas, frame, y_ticks, fit_text(panel.label, width))
        for group in panel.groups:
            canvas.points([(x(time), y(position)) for time, position in group.points], f"points {group.look}")
        is_last = index == len(panels) - 1
        draw_x_axis(canvas, frame, x_ticks if is_last else [], "seconds of the run" if is_last else "")
    draw_legend(canvas, 0, bottom + 54, *lines)
    return canvas


def draw_queues(width: float, rows: Sequence[tuple[str, Sequence[float | None]]], seconds: float) -> Canvas:
    """Draw the mean depth of each hardware queue over time, a row of cells per queue; None: the queue was idle."""
    each = 26 if len(rows) <= 8 else 14
    canvas = Canvas(width, 20 + each * len(rows) + 66)
    frame = Frame(62, 20, width - 8, 20 + each * len(rows))
    highest = max((depth for _, cells in rows for depth in cells if depth is not None), default=1.0)
    for index, (name, cells) in enumerate(rows):
        top, step = frame.top + each * index, frame.width / len(cells)
        if each > 20 or index % 2 == 0:
            canvas.text(0, top + each / 2 + 4, name, "tick")
        canvas.rect(frame.left, top, frame.width, each - 2, "block")
        for column, depth in enumerate(cells):
            if depth is not None:
                tip = f"{name}, {short_number(seconds * column / len(cells))} s: {format_number(depth, 2)} in flight"
                canvas.rect(frame.left + step * column, top, step, each - 2, f"depth s{_level(depth, highest)}", tip)
    x = Scale(0, max(seconds, 1e-3), frame.left, frame.right)
    ticks = [(x(tick), short_number(tick)) for tick in linear_ticks(0, x.high, 6)]
    draw_x_axis(canvas, frame, ticks, "seconds of the run")
    limits = [
        highest ** (level / _LEVELS) if highest > _LEVELS else highest * level / _LEVELS
        for level in range(1, _LEVELS + 1)
    ]
    entries = [(f"depth s{level}", f"≤ {format_number(limit, 2)}") for level, limit in enumerate(limits, 1)]
    canvas.text(0, frame.bottom + 58, "requests in flight:", "tick")
    draw_legend(canvas, text_width("requests in flight:", 11) + 4, frame.bottom + 58, entries)
    return canvas


_LEVELS = 4


def _level(depth: float, highest: float) -> int:
    """Return which of the levels a depth is in: equal steps, or equal ratios where depths differ much."""
    if highest > _LEVELS:
        return min(max(math.ceil(_LEVELS * math.log(max(depth, 1.0)) / math.log(highest)), 1), _LEVELS)
    return min(max(math.ceil(_LEVELS * depth / highest), 1), _LEVELS)
