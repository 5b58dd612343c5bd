"""A share against the share of settings that was measured: one line per sampling method or model."""

import math
from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_x_axis, draw_y_axis, line_look
from knobscope.figures.canvas import Canvas, text_width
from knobscope.figures.scales import Scale, linear_ticks
from knobscope.text.formats import format_number, format_share

#: Width of a line in the legend.
_KEY = 28


@dataclass(frozen=True)
class RateCurve:
    """Points (share of the settings, 20th percentile, median, 80th) under a name; `is_own` is drawn in front."""

    name: str
    points: Sequence[tuple[float, float, float, float]]
    is_own: bool = False


def draw_rates(width: float, curves: Sequence[RateCurve], label: str, threshold: float | None = None) -> Canvas:
    """Draw the medians, and the percentiles of the own curve as a band; values below 0 are at the edge."""
    canvas = Canvas(width, 278)
    names = max((text_width(curve.name, 11) for curve in curves), default=0)
    frame = Frame(38, 34, width - names - _KEY - 18, 240)
    x, y = _scales(frame, curves, threshold)
    draw_y_axis(canvas, frame, [(y(tick), format_number(tick, 2)) for tick in linear_ticks(y.low, y.high, 5)], label)
    ticks = [(x(tick), format_share(tick)) for tick in linear_ticks(0, x.high, 5) if tick > 0]
    draw_x_axis(canvas, frame, ticks, "settings sampled")
    if threshold is not None:
        canvas.line((frame.left, y(threshold)), (frame.right, y(threshold)), "preferred")
    looks = {curve.name: line_look(number) for number, curve in enumerate(curves)}
    for curve in sorted(curves, key=lambda curve: curve.is_own):
        _draw_curve(canvas, curve, looks[curve.name], x, y)
    for number, curve in enumerate(curves):
        left, middle = frame.right + 14, frame.top + 6 + 18 * number
        canvas.line((left, middle), (left + _KEY - 6, middle), f"curve {looks[curve.name]}")
        canvas.dot(left + (_KEY - 6) / 2, middle, 2.8, f"mark {looks[curve.name]}")
        canvas.text(left + _KEY, middle + 4, curve.name, "value" if curve.is_own else "tick")
    return canvas


def _scales(frame: Frame, curves: Sequence[RateCurve], threshold: float | None) -> tuple[Scale, Scale]:
    """Return the scales; the upper one begins below the lowest median, or at 0, and both have some of their range."""
    points = [point for curve in curves for point in curve.points]
    lowest = min((point[2] for point in points), default=0.0)
    low = 0.0 if threshold is None else min(max(0.0, math.floor(5 * lowest) / 5), 0.8)
    x = Scale(0, max((point[0] for point in points), default=1.0), frame.left, frame.right)
    return x, Scale(low, 1, frame.bottom, frame.top)


def _draw_curve(canvas: Canvas, curve: RateCurve, look: str, x: Scale, y: Scale) -> None:
    if curve.is_own:
        edge = [(x(rate), y(low)) for rate, low, _, _ in curve.points]
        edge += [(x(rate), y(high)) for rate, _, _, high in reversed(curve.points)]
        canvas.path(edge, "noise", closed=True)
    canvas.path([(x(rate), y(median)) for rate, _, median, _ in curve.points], f"curve {look}")
    for rate, low, median, high in curve.points:
        span = f"{format_number(low, 3)} to {format_number(high, 3)}"
        tip = f"{curve.name}: {format_number(median, 3)} at {format_share(rate)} (20th to 80th percentile {span})"
        canvas.dot(x(rate), y(median), 2.8, f"mark {look}", tip)
