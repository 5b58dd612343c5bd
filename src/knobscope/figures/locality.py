"""Locality of reads: what a cache leaves of them by its size, and what was used and saved over time."""

from collections.abc import Sequence

from knobscope.figures.axes import Frame, draw_legend, draw_x_axis, draw_y_axis
from knobscope.figures.canvas import Canvas
from knobscope.figures.scales import Scale, linear_ticks, power_ticks, short_number
from knobscope.text.formats import format_share, format_size

Points = Sequence[tuple[float, float]]


def draw_locality(width: float, curve: Points, first: float, useful: float | None, windows: Sequence[Points]) -> Canvas:
    """Draw the miss curve and, below it, shares over the seconds of a run.

    `curve`: (bytes of the cache, share of the bytes read that it leaves); `first`: share that no cache saves; `useful`:
    a size to point out. `windows`: (end in s, share of the bytes read) that is read for the first time, and that a
    cache of that size leaves.
    """
    canvas = Canvas(width, 400)
    _draw_curve(canvas, Frame(46, 36, width - 8, 190), curve, first, useful)
    frame = Frame(46, 262, width - 8, 360)
    x = Scale(0, max([end for points in windows for end, _ in points] or [1e-3]), frame.left, frame.right)
    y = _share_axis(canvas, frame, "")
    draw_legend(
        canvas, 0, frame.top - 9, [("bar plain", "read for the first time"), ("bar line-a", "left by the cache")]
    )
    for points, look in zip(windows, ("plain", "line-a"), strict=True):
        canvas.path([(x(end), y(share)) for end, share in points], f"curve {look}")
    ticks = [(x(tick), short_number(tick)) for tick in linear_ticks(0, x.high, 6)]
    draw_x_axis(canvas, frame, ticks, "seconds of the run")
    return canvas


def _draw_curve(canvas: Canvas, frame: Frame, curve: Points, first: float, useful: float | None) -> None:
    low, high = curve[0][0], curve[-1][0]
    x = Scale(low, high if high > low else 2 * low, frame.left + 6, frame.right, log=True)
    y = _share_axis(canvas, frame, "of the bytes read, still read from the device")
    if useful is not None:
        canvas.line((x(useful), frame.top), (x(useful), frame.bottom), "preferred")
    canvas.line((frame.left, y(first)), (frame.right, y(first)), "preferred long")
    canvas.path([(x(size), y(share)) for size, share in curve], "curve line-a")
    for size, share in curve:
        canvas.dot(x(size), y(share), 3, "mark line-a", f"{format_size(size)} of cache leave {format_share(share)}")
    ticks = [(x(tick), format_size(tick)) for tick in power_ticks(x.low, x.high, 2, int(frame.width / 60))]
    draw_x_axis(canvas, frame, ticks, "size of an additional cache (LRU)")


def _share_axis(canvas: Canvas, frame: Frame, label: str) -> Scale:
    y = Scale(0, 1.02, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(y(tick), format_share(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)], label)
    return y
