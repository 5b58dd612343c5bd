"""What an operation's time consists of, a bar per setting."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import LEGEND_LINE, Frame, draw_legend, draw_x_axis, wrap_legend
from knobscope.figures.canvas import Canvas, cut_text, text_width
from knobscope.figures.scales import Scale, linear_ticks
from knobscope.text.formats import format_micros

_BAR, _ROW = 15, 36


@dataclass(frozen=True)
class TimePart:
    """What a part of the time goes to, in the words of the legend, and its look.

    `more` says what sets it apart from another part of the same name, in a tip; `is_written`: on the part, too, where
    there is room.
    """

    name: str
    look: str
    micros: float
    more: str = ""
    is_written: bool = False


@dataclass(frozen=True)
class TimeBar:
    """A setting, a note below its name, and the parts of its time from left to right; `more` follows their sum."""

    name: str
    note: str
    parts: Sequence[TimePart]
    more: str = ""

    @property
    def total(self) -> str:
        """What is written at the end of the bar."""
        total = format_micros(sum(part.micros for part in self.parts))
        return f"{total} ({self.more})" if self.more else total


def draw_times(width: float, bars: Sequence[TimeBar], key: str = "") -> Canvas:
    """Draw a bar per setting, its parts end to end, on one linear axis: times add up. `key` follows the legend."""
    looks: dict[str, str] = {}
    for part in (part for bar in bars for part in bar.parts):
        if not part.more or part.name not in looks:  # the look of the whole part, where a bar has it
            looks[part.name] = f"bar {part.look}"
    lines = wrap_legend([(look, name) for name, look in looks.items()], width)
    top = 8.0 + LEGEND_LINE * (len(lines) + bool(key))
    labels = min(0.42 * width, max(text_width(text) for bar in bars for text in (bar.name, bar.note)) + 12)
    totals = max(44, *(text_width(bar.total) for bar in bars)) + 8
    frame = Frame(labels, top, width - totals, top + _ROW * len(bars))
    canvas = Canvas(width, frame.bottom + 40)
    draw_legend(canvas, 0, 12, *lines)
    canvas.text(0, 12 + LEGEND_LINE * len(lines), key, "tick")
    scale = Scale(0, max(sum(part.micros for part in bar.parts) for bar in bars), frame.left, frame.right)
    ticks = [(scale(tick), format_micros(tick)) for tick in linear_ticks(0, scale.high, max(int(frame.width / 70), 2))]
    draw_x_axis(canvas, frame, ticks, "per operation", grid=True)
    for index, bar in enumerate(bars):
        y = frame.top + _ROW * index
        canvas.text(0, y + 15, cut_text(bar.name, labels, 12), "name")
        canvas.text(0, y + 29, cut_text(bar.note, labels), "tick")
        _draw_bar(canvas, bar, scale, y + 8)
    return canvas


def _draw_bar(canvas: Canvas, bar: TimeBar, scale: Scale, y: float) -> None:
    reached = 0.0
    for part in bar.parts:
        begin, end = scale(reached), scale(reached + part.micros)
        tip = ", ".join(filter(None, [bar.name, part.name, part.more]))
        canvas.rect(begin, y, end - begin, _BAR, f"bar {part.look}", f"{tip}: {format_micros(part.micros)}")
        if part.is_written and end - begin > text_width(part.name, 11) + 4:
            canvas.text((begin + end) / 2, y + _BAR - 4, part.name, "on-tile", "middle")
        reached += part.micros
    canvas.text(scale(reached) + 5, y + _BAR - 3, bar.total, "value")
