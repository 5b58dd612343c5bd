"""Sequential share against CPU time: what order costs a DBMS (He et al., PVLDB 16(7), 2023, ask that of each DBMS)."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_x_axis, draw_y_axis
from knobscope.figures.canvas import Canvas, text_width
from knobscope.figures.forest import shorten
from knobscope.figures.scales import Scale, linear_ticks, ratio_ticks
from knobscope.text.formats import format_micros, format_share

#: Where CPU time differs by more than this factor, a linear axis would flatten most settings.
_LOG_ABOVE = 5


@dataclass(frozen=True)
class OrderPoint:
    """A setting: its sequential share (0 to 1), CPU time of an operation in µs, and how its throughput looks.

    `look` is `better`, `worse` or `unclear`; of the default configuration `ink`.
    """

    name: str
    share: float
    cpu_us: float
    look: str


def draw_order(width: float, points: Sequence[OrderPoint], x_label: str, named: int = 8) -> Canvas:
    """Draw settings as dots; the first `named` of them have a number, and their names below."""
    shown = points[:named]
    canvas = Canvas(width, 262 + 17 * len(shown))
    frame = Frame(62, 30, width - 20, 206)
    x = Scale(0, 1, frame.left, frame.right)
    lowest, highest = min(point.cpu_us for point in points), max(point.cpu_us for point in points)
    is_log = highest > _LOG_ABOVE * lowest
    y = Scale(lowest / 1.4 if is_log else 0, highest * (1.4 if is_log else 1.1), frame.bottom, frame.top, log=is_log)
    ticks = ratio_ticks(y.low, y.high) if is_log else linear_ticks(0, y.high, 4)
    draw_y_axis(canvas, frame, [(y(tick), format_micros(tick)) for tick in ticks], "CPU time of an operation")
    draw_x_axis(canvas, frame, [(x(tick), format_share(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)], x_label)
    dots = [(x(point.share), y(point.cpu_us)) for point in points]
    for at, point in reversed(list(zip(dots, points, strict=True))):
        tip = f"{point.name}: {format_share(point.share)} in order, {format_micros(point.cpu_us)}"
        canvas.dot(*at, 4.6, f"mark {point.look}", tip)
    occupied = [(across, down + 4) for across, down in dots]
    for number, (across, down) in enumerate(dots[:named], 1):
        occupied.append(_free(across, down, occupied, frame))
        canvas.text(*occupied[-1], str(number), "tick", "middle")
    for row, point in enumerate(shown):
        level = 262 + 17 * row
        canvas.text(14, level, str(row + 1), "tick", "end")
        canvas.dot(25, level - 4, 4.6, f"mark {point.look}")
        canvas.text(35, level, shorten(point.name, int((width - 40) / text_width("m", 11))), "tick")
    return canvas


def _free(x: float, y: float, occupied: Sequence[tuple[float, float]], frame: Frame) -> tuple[float, float]:
    """Return where a number next to a dot covers no other one: around it, then further out."""
    candidates = [
        (x + radius * math.cos(turn * math.pi / 4), y + 4 + radius * math.sin(turn * math.pi / 4))
        for radius in (12, 22, 34, 48)
        for turn in (0, 4, 6, 2, 7, 1, 5, 3)
    ]
    for a, b in candidates:
        is_inside = frame.left + 6 < a < frame.right + 12 and frame.top < b < frame.bottom - 2
        if is_inside and all(abs(a - c) > 10 or abs(b - d) > 12 for c, d in occupied):
            return a, b
    return candidates[0]
