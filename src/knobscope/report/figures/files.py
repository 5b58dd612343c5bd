"""Where I/O goes: bytes by table or kind of file, and single requests over time."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.formats import format_size
from knobscope.report.figures.axes import Frame, draw_legend, draw_x_axis, draw_y_axis
from knobscope.report.figures.canvas import Canvas, Point, text_width
from knobscope.report.figures.scales import Scale, linear_ticks, short_number

__all__ = ["OP_LOOKS", "FileSizes", "draw_file_sizes", "draw_scatter"]

OP_LOOKS = {"read": "line-a", "write": "line-b"}
_BAR = 15


@dataclass(frozen=True)
class FileSizes:
    """A table or a kind of file, with the bytes of a run by operation (`read`, `write`)."""

    name: str
    note: str
    sizes: Mapping[str, float]


def draw_file_sizes(width: float, files: Sequence[FileSizes]) -> Canvas:
    """Draw a bar for the reads and one for the writes of each file, on one axis; what did not occur has no bar."""
    shown = [(file, [op for op in OP_LOOKS if file.sizes.get(op)]) for file in files]
    row_heights = [_BAR * max(len(ops), 1) + 14 for _, ops in shown]
    labels = min(0.36 * width, max(text_width(file.name) for file in files) + 16)
    canvas = Canvas(width, 26 + sum(row_heights) + 22)
    frame = Frame(labels, 26, width - 74, 26 + sum(row_heights))
    draw_legend(canvas, 0, 12, [(f"bar {look}", f"{op}s") for op, look in OP_LOOKS.items()])
    highest = max((size for file in files for size in file.sizes.values()), default=1.0)
    scale = Scale(0, max(highest, 1.0), frame.left, frame.right)
    ticks = [(scale(tick), format_size(tick)) for tick in _size_ticks(scale.high, int(frame.width / 90))]
    draw_x_axis(canvas, frame, ticks, grid=True)
    y = frame.top
    for (file, ops), height in zip(shown, row_heights, strict=True):
        canvas.text(0, y + height / 2 + (0 if file.note else 4), _fit(file.name, labels), "name")
        if file.note:
            canvas.text(0, y + height / 2 + 13, _fit(file.note, labels), "tick")
        for index, op in enumerate(ops):
            top, end = y + 7 + _BAR * index, scale(file.sizes[op])
            words = format_size(file.sizes[op])
            tip = f"{file.name}: {op}s of {words}"
            canvas.rect(frame.left, top, max(end - frame.left, 1.5), _BAR - 2, f"bar {OP_LOOKS[op]}", tip)
            canvas.text(end + 5, top + _BAR - 4, words, "value")
        y += height
    return canvas


def _size_ticks(highest: float, most: int) -> list[float]:
    """Return round sizes in binary units from 0 on."""
    unit = 1.0
    while highest / unit >= 1024:
        unit *= 1024
    return [tick * unit for tick in linear_ticks(0, highest / unit, max(most, 2))]


def _fit(text: str, pixels: float) -> str:
    most = int(pixels / text_width("m"))
    return text if len(text) <= most else f"…{text[-(most - 1) :]}"  # paths differ at their end


def draw_scatter(
    width: float, points: Mapping[str, Sequence[Point]], seconds: float, top_bytes: float, label: str
) -> Canvas:
    """Draw requests as points: operation -> (second of the run, byte in the file or on the device)."""
    canvas = Canvas(width, 214)
    frame = Frame(58, 36, width - 8, 176)
    x = Scale(0, max(seconds, 1e-3), frame.left + 2, frame.right)
    y = Scale(0, max(top_bytes, 1.0), frame.bottom - 2, frame.top)
    draw_y_axis(canvas, frame, [(y(tick), format_size(tick)) for tick in _size_ticks(y.high, 4)], label)
    used = [op for op in OP_LOOKS if points.get(op)]
    draw_legend(canvas, width - 76 * len(used), frame.top - 9, [(f"bar {OP_LOOKS[op]}", f"{op}s") for op in used])
    for op in used:
        canvas.points([(x(time), y(position)) for time, position in points[op]], f"points {OP_LOOKS[op]}")
    draw_x_axis(
        canvas, frame, [(x(tick), short_number(tick)) for tick in linear_ticks(0, x.high, 6)], "seconds of the run"
    )
    return canvas
