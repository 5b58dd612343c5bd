"""The curve of a knob with a knee, turning point or cliff, and the slopes on both sides of it."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_x_axis, draw_y_axis
from knobscope.figures.canvas import Canvas, text_width
from knobscope.figures.scales import Scale, fold_ticks
from knobscope.text.formats import format_fold


@dataclass(frozen=True)
class BendPoint:
    """One value of a knob at a position on the axis; its effect is a natural-log ratio, with an interval if known."""

    position: float
    label: str
    effect: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Side:
    """The straight line on one side of the point, from (position, effect) to (position, effect), and its words."""

    look: str
    start: tuple[float, float]
    end: tuple[float, float]
    words: str


def draw_bend(
    width: float, points: Sequence[BendPoint], sides: Sequence[Side], at: float, kind: str, label: str
) -> Canvas:
    """Draw effects over values, a line per side, and where they meet (position `at`, named `kind`)."""
    canvas = Canvas(width, 268)
    frame = Frame(52, 62, width - 30, 218)
    x = Scale(points[0].position, points[-1].position, frame.left + 14, frame.right - 14)
    ends = [end for point in points for end in (point.effect, *(point.interval or ()))]
    centres = [point.effect for point in points]
    room = 1.2 * max(max(centres) - min(centres), 0.02)
    # An interval that is far wider than the curve is high must not flatten it.
    low, high = max(min(ends), min(centres) - room), min(max(ends), max(centres) + room)
    margin = 0.06 * (high - low)
    y = Scale(low - margin, high + margin, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(y(value), text) for value, text in fold_ticks(y.low, y.high, 5)])
    draw_x_axis(canvas, frame, _thinned([(x(point.position), point.label) for point in points]), label)
    canvas.line((x(at), frame.top - 6), (x(at), frame.bottom), "preferred")
    for side, row in zip(sides, (14, 31), strict=True):
        canvas.path([(x(position), y(effect)) for position, effect in (side.start, side.end)], f"side {side.look}")
        canvas.rect(0, row - 9, 10, 10, f"bar {side.look}")
        canvas.text(15, row, side.words, "tick")
    canvas.text(x(at), frame.top - 10, kind, "strong", "end" if x(at) > frame.left + 0.7 * frame.width else "middle")
    canvas.path([(x(point.position), y(point.effect)) for point in points], "curve thin")
    for point in points:
        if point.interval:
            canvas.line(
                (x(point.position), y(point.interval[0])), (x(point.position), y(point.interval[1])), "interval"
            )
            for end, arrow in zip(point.interval, "↓↑", strict=True):
                if not y.holds(end):
                    canvas.text(x(point.position), y(end) + 4, arrow, "tick", "middle")
        tip = f"{point.label}: {format_fold(point.effect)}"
        canvas.dot(x(point.position), y(point.effect), 4.2, "mark", tip)
    return canvas


def _thinned(ticks: Sequence[tuple[float, str]]) -> list[tuple[float, str]]:
    """Leave out ticks whose text would touch the one before."""
    fitting: list[tuple[float, str]] = []
    for position, text in ticks:
        room = (text_width(text, 11) + text_width(fitting[-1][1], 11)) / 2 + 6 if fitting else 0.0
        if not fitting or position - fitting[-1][0] >= room:
            fitting.append((position, text))
    return fitting
