"""How fast tuners get how far: best performance so far by number of runs."""

from collections.abc import Sequence
from dataclasses import dataclass

from knobscope.figures.axes import LEGEND_LINE, Frame, draw_legend, draw_x_axis, draw_y_axis, line_look, wrap_legend
from knobscope.figures.canvas import Canvas
from knobscope.figures.scales import Scale, linear_ticks
from knobscope.text.formats import format_number


@dataclass(frozen=True)
class TuningCurve:
    """One space: its name, the median over the seeds, and each seed; values from trial 0 (the default, 1) on."""

    name: str
    median: Sequence[float]
    seeds: Sequence[Sequence[float]]


def draw_tuning(width: float, curves: Sequence[TuningCurve], goal: float | None) -> Canvas:
    """Draw a step line per space (median) and a thin one per seed; `goal` is 99 % of what the last one reaches."""
    names = [(f"bar {line_look(index)}", curve.name) for index, curve in enumerate(curves)]
    lines = wrap_legend(names, width - 58)
    top = 23.0 + LEGEND_LINE * len(lines)
    canvas = Canvas(width, top + 246)
    frame = Frame(46, top, width - 12, top + 200)
    trials = max((len(curve.median) for curve in curves), default=2) - 1
    highest = max((value for curve in curves for seed in curve.seeds for value in seed), default=1.0)
    x = Scale(0, max(trials, 1), frame.left, frame.right)
    y = Scale(0.98, max(highest, 1.05) * 1.02, frame.bottom, frame.top)
    ticks = [(y(tick), f"{format_number(tick, 3)}x") for tick in linear_ticks(1.0, y.high, 5)]
    draw_y_axis(canvas, frame, ticks, "best throughput so far, default = 1")
    if goal is not None:
        canvas.line((frame.left, y(goal)), (frame.right, y(goal)), "preferred")
        canvas.text(frame.left + 4, y(goal) - 5, f"99 % of the best of {curves[-1].name}", "tick")
    for index, curve in enumerate(curves):
        look = line_look(index)
        for seed in curve.seeds:
            canvas.path(_steps(seed, x, y), f"curve thin soft {look}")
        canvas.path(_steps(curve.median, x, y), f"curve {look}")
    draw_legend(canvas, frame.left, 16, *lines)
    whole = [tick for tick in linear_ticks(0, trials, 6) if tick.is_integer()]
    draw_x_axis(canvas, frame, [(x(tick), format_number(tick)) for tick in whole], "runs of a tuner")
    return canvas


def _steps(values: Sequence[float], x: Scale, y: Scale) -> list[tuple[float, float]]:
    points = []
    for trial, value in enumerate(values):
        if trial:
            points.append((x(trial), y(values[trial - 1])))
        points.append((x(trial), y(value)))
    return points
