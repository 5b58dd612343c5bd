"""What an operation's time consists of, a bar per setting."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_legend, draw_x_axis
from knobscope.figures.canvas import Canvas, fit_text, text_width
from knobscope.figures.scales import Scale, linear_ticks
from knobscope.text.formats import format_micros

__all__ = ["TimeBar", "draw_times"]

#: What the time goes to, and the look of it.
_LOOKS = {"flush": "line-b", "read, write": "line-a", "no request": "soft"}
_BAR, _ROW = 15, 36


@dataclass(frozen=True)
class TimeBar:
    """A setting, a note below its name, and the microseconds of each part, in the order of the legend."""

    name: str
    note: str
    parts: Sequence[float]


def draw_times(width: float, bars: Sequence[TimeBar]) -> Canvas:
    """Draw a bar per setting, its parts end to end, on one linear axis: times add up."""
    canvas = Canvas(width, 26 + _ROW * len(bars) + 40)
    labels = min(0.42 * width, max(text_width(text) for bar in bars for text in (bar.name, bar.note)) + 12)
    frame = Frame(labels, 26, width - 52, 26 + _ROW * len(bars))
    draw_legend(canvas, 0, 12, [(f"bar {look}", part) for part, look in _LOOKS.items()])
    scale = Scale(0, max(sum(bar.parts) for bar in bars), frame.left, frame.right)
    ticks = [(scale(tick), format_micros(tick)) for tick in linear_ticks(0, scale.high, max(int(frame.width / 70), 2))]
    draw_x_axis(canvas, frame, ticks, "per operation", grid=True)
    for index, bar in enumerate(bars):
        y = frame.top + _ROW * index
        canvas.text(0, y + 15, fit_text(bar.name, labels), "name")
        canvas.text(0, y + 29, bar.note, "tick")
        reached = 0.0
        for micros, (part, look) in zip(bar.parts, _LOOKS.items(), strict=True):
            begin, end = scale(reached), scale(reached + micros)
            canvas.rect(begin, y + 8, end - begin, _BAR, f"bar {look}", f"{bar.name}, {part}: {format_micros(micros)}")
            reached += micros
        canvas.text(scale(reached) + 5, y + 8 + _BAR - 3, format_micros(reached), "value")
    return canvas
