"""Frames with axes: the part that all figures share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.canvas import Canvas, cut_text, text_width
from knobscope.figures.scales import Tick

#: Pixels between the lines of a legend.
LEGEND_LINE = 17
_LOOKS = ("line-a", "line-b", "line-c", "line-d")
_Entries = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Frame:
    """The rectangle that data is drawn in, in pixels."""

    left: float
    top: float
    right: float
    bottom: float

    @property
    def width(self) -> float:
        """Pixels from left to right."""
        return self.right - self.left

    @property
    def height(self) -> float:
        """Pixels from top to bottom."""
        return self.bottom - self.top


def draw_x_axis(canvas: Canvas, frame: Frame, ticks: Sequence[Tick], label: str = "", *, grid: bool = False) -> None:
    """Draw the axis below a frame; ticks come as (pixel, text).

    A text that would touch the one before it is left out, and none ends outside the picture.
    """
    canvas.line((frame.left, frame.bottom), (frame.right, frame.bottom), "axis")
    reached = -math.inf
    for position, text in sorted(ticks):
        if grid:
            canvas.line((position, frame.top), (position, frame.bottom), "grid")
        half = text_width(text) / 2
        middle = min(max(position, half), canvas.width - half)
        if middle - half > reached:
            canvas.text(middle, frame.bottom + 15, text, "tick", "middle")
            reached = middle + half
    if label:
        canvas.text((frame.left + frame.right) / 2, frame.bottom + 31, label, "label", "middle")


def draw_y_axis(canvas: Canvas, frame: Frame, ticks: Sequence[Tick], label: str = "") -> None:
    """Draw grid lines with their values at the left, and what they mean above the frame; ticks as (pixel, text)."""
    for position, text in ticks:
        canvas.line((frame.left, position), (frame.right, position), "grid")
        canvas.text(frame.left - 6, position + 4, text, "tick", "end")
    if label:
        canvas.text(0, frame.top - 9, label, "label")


def line_look(number: int) -> str:
    """Return the colour of a line; of more lines than colours a dashed one."""
    return _LOOKS[number % len(_LOOKS)] + (" dashed" if number >= len(_LOOKS) else "")


def wrap_legend(entries: _Entries, width: float) -> list[list[tuple[str, str]]]:
    """Return the entries of a legend, (look, text), in lines of a width; a text that is wider than a line is cut."""
    lines: list[list[tuple[str, str]]] = [[]]
    remaining = width
    for look, text in entries:
        if lines[-1] and _entry_width(text) > remaining:
            lines.append([])
            remaining = width
        lines[-1].append((look, cut_text(text, width - 15)))
        remaining -= _entry_width(text)
    return lines


def draw_legend(canvas: Canvas, x: float, y: float, *lines: _Entries) -> None:
    """Draw squares with their meaning, each line from `x` to the right; entries as (look, text)."""
    for number, line in enumerate(lines):
        left, base = x, y + LEGEND_LINE * number
        for look, text in line:
            canvas.rect(left, base - 9, 10, 10, look)
            canvas.text(left + 15, base, text, "tick")
            left += _entry_width(text)


def legend_width(line: _Entries) -> float:
    """Return the pixels that a line of a legend takes."""
    return sum(_entry_width(text) for _, text in line)


def _entry_width(text: str) -> float:
    return 29 + len(text) * 6.6 + 2 * sum(map(str.isupper, text))  # capitals are wider
