"""Lines: measured curves of a device, series of a run, histograms of latency."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from statistics import median

from knobscope.figures.axes import Frame, draw_legend, draw_x_axis, draw_y_axis, legend_width
from knobscope.figures.canvas import Anchor, Canvas, text_width
from knobscope.figures.scales import Scale, Tick, linear_ticks, power_ticks, short_number, spread_labels
from knobscope.text.formats import format_micros, format_share, format_size


@dataclass(frozen=True)
class Curve:
    """Points (x, y) with x above 0, under a name that is written at the line's end."""

    name: str
    look: str
    points: Sequence[tuple[float, float]]


@dataclass(frozen=True)
class Mark:
    """A value on the x axis to point out."""

    value: float
    text: str


def draw_loglog(
    width: float, curves: Sequence[Curve], x_label: str, y_label: str, *, sizes: bool = False, mark: Mark | None = None
) -> Canvas:
    """Draw curves on two logarithmic axes; x ticks are powers of two, as sizes or as plain numbers."""
    canvas = Canvas(width, 270)
    names = max(text_width(curve.name) for curve in curves)
    frame = Frame(46, 36, width - max(46, names + 10), 226)
    x, y = _log_scales(frame, curves, mark)
    y_ticks = power_ticks(y.low, y.high, 10, 6)
    if len(y_ticks) < 2:
        y_ticks = [tick for tick in linear_ticks(y.low, y.high, 4) if tick > 0]
    draw_y_axis(canvas, frame, [(y(tick), short_number(tick)) for tick in y_ticks], y_label)
    ticks = power_ticks(x.low, x.high, 2, 7)
    labels = [format_size(tick).replace("iB", "") if sizes else short_number(tick) for tick in ticks]
    draw_x_axis(canvas, frame, [(x(tick), text) for tick, text in zip(ticks, labels, strict=True)], x_label)
    if mark is not None:
        canvas.line((x(mark.value), frame.top - 4), (x(mark.value), frame.bottom), "preferred")
        canvas.text(x(mark.value), frame.top - 9, mark.text, "tick", _side(x(mark.value), frame))
    ends = spread_labels([y(curve.points[-1][1]) for curve in curves], 14, frame.top + 4, frame.bottom)
    for curve, position in zip(curves, ends, strict=True):
        canvas.path([(x(a), y(b)) for a, b in curve.points], f"curve {curve.look}")
        for a, b in curve.points:
            canvas.dot(x(a), y(b), 3, f"mark {curve.look}", f"{curve.name}: {short_number(b)} at {short_number(a)}")
        canvas.text(frame.right + 8, position + 4, curve.name, f"tick {curve.look}")
    return canvas


def _side(position: float, frame: Frame) -> Anchor:
    return "end" if position > frame.left + 0.7 * frame.width else "middle"


def _log_scales(frame: Frame, curves: Sequence[Curve], mark: Mark | None) -> tuple[Scale, Scale]:
    xs = [point[0] for curve in curves for point in curve.points] + ([mark.value] if mark else [])
    ys = [point[1] for curve in curves for point in curve.points if point[1] > 0] or [1.0]
    low, high = min(xs), max(xs)
    x = Scale(low, high if high > low else 2 * low, frame.left + 6, frame.right, log=True)
    return x, Scale(min(ys) / 1.3, max(ys) * 1.3, frame.bottom, frame.top, log=True)


def draw_series(width: float, panels: Sequence[tuple[str, Sequence[Curve]]]) -> Canvas:
    """Draw series over the seconds of a run below each other, each panel (label, curves) from 0."""
    each = 118
    canvas = Canvas(width, each * len(panels) + 40)
    last = max((point[0] for _, curves in panels for curve in curves for point in curve.points), default=1.0)
    for index, (label, curves) in enumerate(panels):
        frame = Frame(46, each * index + 30, width - 8, each * (index + 1) - 2)
        x = Scale(0, max(last, 1e-3), frame.left, frame.right)
        highest = max((b for curve in curves for _, b in curve.points), default=1.0)
        y = Scale(0, max(highest, 1e-3) * 1.05, frame.bottom, frame.top)
        draw_y_axis(canvas, frame, [(y(tick), short_number(tick)) for tick in linear_ticks(0, y.high, 3)], label)
        for curve in curves:
            canvas.path([(x(a), y(b)) for a, b in curve.points], f"curve thin {curve.look}")
        if len(curves) > 1:
            _name_curves(canvas, frame, curves)
        is_last = index == len(panels) - 1
        ticks = [(x(tick), short_number(tick)) for tick in linear_ticks(0, x.high, 6)] if is_last else []
        draw_x_axis(canvas, frame, ticks, "seconds of the run" if is_last else "")
    return canvas


def draw_latencies(width: float, curves: Sequence[Curve], label: str) -> Canvas:
    """Draw histograms as steps: points are (upper edge in µs, share of requests), edges growing."""
    canvas = Canvas(width, 214)
    frame = Frame(46, 36, width - 8, 176)
    edges = [point[0] for curve in curves for point in curve.points if point[1] > 0]
    x = Scale(max(min(edges) / 2, 0.1), max(edges) * 1.2, frame.left, frame.right, log=True)
    highest = max(point[1] for curve in curves for point in curve.points)
    y = Scale(0, highest * 1.05, frame.bottom, frame.top)
    draw_y_axis(
        canvas, frame, [(y(tick), format_share(tick)) for tick in linear_ticks(0, y.high, 3)], "share of requests"
    )
    _name_curves(canvas, frame, curves)
    for curve in curves:
        canvas.path(_steps(curve.points, x, y, frame), f"area {curve.look}")
    draw_x_axis(canvas, frame, _latency_ticks(x), label)
    return canvas


def _name_curves(canvas: Canvas, frame: Frame, curves: Sequence[Curve]) -> None:
    line = [(f"bar {curve.look}", curve.name) for curve in curves]
    draw_legend(canvas, canvas.width - legend_width(line), frame.top - 9, line)


def bucket_points(buckets: Iterable[tuple[float, float, float]]) -> list[tuple[float, float]]:
    """Return the points of a histogram from its buckets (low and high edge, share); zero where there is none."""
    points: list[tuple[float, float]] = []
    for low, high, share in buckets:
        if points and low > 1.0001 * points[-1][0]:
            points.append((low, 0.0))
        points.append((high, share))
    return points


def _steps(points: Sequence[tuple[float, float]], x: Scale, y: Scale, frame: Frame) -> list[tuple[float, float]]:
    shown = [point for point in points if point[1] > 0]
    steps = [(x(shown[0][0] / 2), frame.bottom)]
    previous = shown[0][0] / 1.2
    for edge, share in points:
        if edge >= x.low:
            steps += [(x(previous), y(share)), (x(edge), y(share))]
            previous = edge
    return [*steps, (x(previous), frame.bottom)]


def _latency_ticks(x: Scale) -> list[Tick]:
    ticks = power_ticks(x.low, x.high, 10, 7)
    if len(ticks) < 2:
        middle = math.sqrt(x.low * x.high)
        ticks = [float(f"{value:.0e}") for value in (x.low * 1.2, middle, x.high / 1.2)]
    return [(x(tick), format_micros(tick)) for tick in ticks]


def measure_intervals(times: Sequence[float]) -> tuple[float, dict[float, float]]:
    """Return the usual length of intervals, and by its end that of each; `times`: two or more ends, rising.

    The last interval ends with the window, and is shorter. One without traffic is not in `times`.
    """
    step = median(after - before for before, after in pairwise(times))
    return step, {time: max(min(step, time - before), 1e-3) for before, time in pairwise([times[0] - step, *times])}


def with_pauses(points: Sequence[tuple[float, float]], step: float, end: float) -> list[tuple[float, float]]:
    """Add the zeros that a series leaves out where there was no traffic, in a window from 0 to its `end`."""
    filled: list[tuple[float, float]] = []
    before = 0.0
    for time, value in points:
        if time - before > 1.5 * step:
            filled += [(before + step, 0.0), (time - step, 0.0)]
        filled.append((time, value))
        before = time
    if end - before > step / 2:
        filled += [(min(before + step, end), 0.0), (end, 0.0)]
    return filled
