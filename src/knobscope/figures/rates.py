"""A share against the share of settings that was measured: one line per sampling method or model."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_x_axis, draw_y_axis
from knobscope.figures.canvas import Canvas, text_width
from knobscope.figures.scales import Scale, linear_ticks, spread_labels
from knobscope.text.formats import format_number, format_share

__all__ = ["RateCurve", "draw_rates"]

_LOOKS = ("line-a", "line-b", "line-c", "line-d")


@dataclass(frozen=True)
class RateCurve:
    """Points (share of the settings, 20th percentile, median, 80th) under a name; `is_own` is drawn in front."""

    name: str
    points: Sequence[tuple[float, float, float, float]]
    is_own: bool = False


def draw_rates(width: float, curves: Sequence[RateCurve], label: str, threshold: float | None = None) -> Canvas:
    """Draw the medians, and the percentiles of the own curve as a band; values below 0 are at the edge."""
    canvas = Canvas(width, 286)
    names = max((text_width(curve.name, 11) for curve in curves), default=0)
    frame = Frame(38, 34, width - names - 14, 240)
    last = max((point[0] for curve in curves for point in curve.points), default=1.0)
    x, y = Scale(0, last, frame.left, frame.right), Scale(0, 1, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(y(tick), format_number(tick, 2)) for tick in linear_ticks(0, 1, 5)], label)
    ticks = [(x(tick), format_share(tick)) for tick in linear_ticks(0, last, 5)]
    draw_x_axis(canvas, frame, ticks, "settings sampled")
    if threshold is not None:
        canvas.line((frame.left, y(threshold)), (frame.right, y(threshold)), "preferred")
    looks = {curve.name: _look(number) for number, curve in enumerate(curves)}
    for curve in sorted(curves, key=lambda curve: curve.is_own):
        look = looks[curve.name]
        if curve.is_own:
            edge = [(x(rate), y(low)) for rate, low, _, _ in curve.points]
            edge += [(x(rate), y(high)) for rate, _, _, high in reversed(curve.points)]
            canvas.path(edge, "noise", closed=True)
        canvas.path([(x(rate), y(median)) for rate, _, median, _ in curve.points], f"curve {look}")
        for rate, low, median, high in curve.points:
            span = f"{format_number(low, 3)} to {format_number(high, 3)}"
            tip = f"{curve.name}: {format_number(median, 3)} at {format_share(rate)} (20th to 80th percentile {span})"
            canvas.dot(x(rate), y(median), 2.8, f"mark {look}", tip)
    drawn = [curve for curve in curves if curve.points]
    ends = spread_labels([y(curve.points[-1][2]) for curve in drawn], 14, frame.top + 4, frame.bottom)
    for curve, position in zip(drawn, ends, strict=True):
        canvas.text(frame.right + 8, position + 4, curve.name, f"tick {looks[curve.name]}")
    return canvas


def _look(number: int) -> str:
    """Return a colour; of more curves than colours a dashed one."""
    return _LOOKS[number % len(_LOOKS)] + (" dashed" if number >= len(_LOOKS) else "")
