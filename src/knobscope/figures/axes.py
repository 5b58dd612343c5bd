"""Frames with axes: the part that all figures share."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.canvas import Canvas, text_width
from knobscope.figures.scales import Tick

__all__ = ["Frame", "draw_legend", "draw_x_axis", "draw_y_axis"]


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


def draw_legend(canvas: Canvas, x: float, y: float, entries: Sequence[tuple[str, str]]) -> None:
    """Draw squares with their meaning in one line, from `x` to the right; entries as (look, text)."""
    for look, text in entries:
        canvas.rect(x, y - 9, 10, 10, look)
        canvas.text(x + 15, y, text, "tick")
        x += 15 + len(text) * 6.6 + 14
