"""Single runs as dots: throughput, say, of the default and of changed values, with what their effect means there."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from knobscope.figures.axes import Frame, draw_x_axis
from knobscope.figures.canvas import Canvas, cut_text, text_width
from knobscope.figures.scales import Scale, linear_ticks, short_number
from knobscope.text.formats import format_rate


@dataclass(frozen=True)
class Strip:
    """Runs of one setting: a figure of each, such as throughput in ops/s, and the interval of their mean, if known."""

    name: str
    look: str
    runs: Sequence[float]
    centre: float
    interval: tuple[float, float] | None = None


def draw_strips(
    width: float,
    strips: Sequence[Strip],
    label: str = "operations per second",
    format_value: Callable[[float], str] = format_rate,
) -> Canvas:
    """Draw a row of dots per setting, from 0, with its mean as a bar and its interval as a line."""
    row = 48
    canvas = Canvas(width, 10 + row * len(strips) + 36)
    frame = Frame(8, 10, width - 12, 10 + row * len(strips))
    ends = [end for strip in strips for end in strip.interval or ()]
    highest = max(max((max(strip.runs) for strip in strips if strip.runs), default=1.0), *ends, 0.0)
    scale = Scale(
        0, min(highest, 3 * max(max(strip.runs, default=1.0) for strip in strips)) * 1.05, frame.left, frame.right
    )
    ticks = [(scale(tick), short_number(tick)) for tick in linear_ticks(0, scale.high, 5)]
    draw_x_axis(canvas, frame, ticks, label, grid=True)
    for index, strip in enumerate(strips):
        y = frame.top + row * index + 32
        figure = f": {format_value(strip.centre)}"
        heading = cut_text(strip.name, frame.width - text_width(figure, 14), 14) + figure
        canvas.text(frame.left, y - 16, heading, "strong")
        canvas.rect(frame.left, y - 7, scale(strip.centre) - frame.left, 14, f"bar soft {strip.look}")
        if strip.interval is not None:
            canvas.line((scale(strip.interval[0]), y), (scale(strip.interval[1]), y), f"interval {strip.look}")
            for end, arrow in zip(strip.interval, "‹›", strict=True):
                if not scale.holds(end):
                    canvas.text(scale(end), y + 4, arrow, "tick", "middle")
        canvas.line((scale(strip.centre), y - 9), (scale(strip.centre), y + 9), f"centre {strip.look}")
        for number, run in enumerate(strip.runs):
            canvas.dot(scale(run), y + (number % 3 - 1) * 3, 2.8, f"run {strip.look}", format_value(run))
    return canvas
