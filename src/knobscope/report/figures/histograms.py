"""What the device was asked to do under the default and under a changed value: sizes, depth, shares."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.formats import format_share, format_size
from knobscope.report.figures.axes import Frame, draw_legend, draw_x_axis, draw_y_axis
from knobscope.report.figures.canvas import Canvas
from knobscope.report.figures.scales import Scale, linear_ticks

__all__ = ["Sizes", "depth_bins", "draw_depths", "draw_shares", "draw_sizes", "size_bins"]


@dataclass(frozen=True)
class Sizes:
    """Requests by size in bytes, under a heading."""

    heading: str
    requests: Mapping[int, int]


def size_bins(requests: Mapping[int, int], preferred: int) -> dict[int, tuple[float, float]]:
    """Return per power of two (exponent) the shares of requests that are, and are not, a multiple of `preferred`."""
    total = sum(requests.values()) or 1
    bins: dict[int, tuple[float, float]] = {}
    for size, count in requests.items():
        exponent = int(math.log2(size)) if size > 0 else 0
        whole, broken = bins.get(exponent, (0.0, 0.0))
        if preferred and size % preferred == 0:
            bins[exponent] = (whole + count / total, broken)
        else:
            bins[exponent] = (whole, broken + count / total)
    return bins


def draw_sizes(width: float, panels: Sequence[Sizes], preferred: int | None, what: str = "writes") -> Canvas:
    """Draw size histograms below each other on one axis; the preferred size is marked in all."""
    binned = [size_bins(panel.requests, preferred or 0) for panel in panels]
    used = {exponent for bins in binned for exponent in bins} | ({int(math.log2(preferred))} if preferred else set())
    first, last = min(used, default=12), max(used, default=12)
    first, last = first - (last == first), last + 1
    each = 124
    canvas = Canvas(width, each * len(panels) + 62)
    draw_legend(canvas, 40, each * len(panels) + 56, _size_legend(preferred))
    step = (width - 48) / (last - first + 1)
    top_share = max([share for bins in binned for pair in bins.values() for share in [sum(pair)]], default=1.0)
    for index, (panel, bins) in enumerate(zip(panels, binned, strict=True)):
        frame = Frame(40, each * index + 26, width - 8, each * (index + 1) - 12)
        scale = Scale(0, max(top_share, 0.01), frame.bottom, frame.top)
        draw_y_axis(canvas, frame, [(scale(tick), format_share(tick)) for tick in linear_ticks(0, scale.high, 2)])
        canvas.text(0, frame.top - 9, panel.heading, "strong")
        if preferred:
            position = frame.left + step * (math.log2(preferred) - first + 0.5)
            canvas.line((position, frame.top), (position, frame.bottom), "preferred")
        for exponent, (whole, broken) in bins.items():
            _draw_bin(canvas, frame.left + step * (exponent - first), step, scale, exponent, whole, broken, what)
        last_one = index == len(panels) - 1
        ticks = [(frame.left + step * (e - first + 0.5), _size_tick(e)) for e in _thinned(first, last, step)]
        draw_x_axis(canvas, frame, ticks if last_one else [], f"size of {what}" if last_one else "")
    return canvas


def _draw_bin(
    canvas: Canvas, x: float, step: float, scale: Scale, exponent: int, whole: float, broken: float, what: str
) -> None:
    size, bar = format_size(2**exponent), min(step - 3, 34)
    left = x + (step - bar) / 2
    if whole:
        tip = f"{format_share(whole)} of {what} from {size} on, multiples of the preferred size"
        canvas.rect(left, scale(whole), bar, scale(0) - scale(whole), "bar whole", tip)
    if broken:
        tip = f"{format_share(broken)} of {what} from {size} on, no multiples of the preferred size"
        top = scale(whole + broken)
        canvas.rect(left, top, bar, scale(whole) - top, "bar broken", tip)


def _size_legend(preferred: int | None) -> list[tuple[str, str]]:
    if not preferred:
        return [("bar broken", "requests by size")]
    return [("bar whole", f"multiple of {format_size(preferred)} (preferred, dotted)"), ("bar broken", "not")]


def _size_tick(exponent: int) -> str:
    return format_size(2**exponent).replace("iB", "").replace("\u00a0", " ")


def _thinned(first: int, last: int, step: float) -> range:
    return range(first, last + 1, max(1, math.ceil(40 / step)))


def depth_bins(time_at: Mapping[int, int]) -> dict[str, float]:
    """Return shares of the busy time (depth above 0) at 1, 2, 3, 4, 5–8, 9–16, 17–32 requests in flight, and more."""
    edges = [(1, 1), (2, 2), (3, 3), (4, 4), (5, 8), (9, 16), (17, 32), (33, 1 << 30)]
    busy = sum(time for depth, time in time_at.items() if depth > 0) or 1
    names = {low: f"{low}" if low == high else f"{low}–{high}" if high < 1 << 30 else f"≥ {low}" for low, high in edges}
    return {
        names[low]: sum(time for depth, time in time_at.items() if low <= depth <= high) / busy for low, high in edges
    }


def draw_depths(width: float, series: Sequence[tuple[str, str, Mapping[str, float]]], what: str) -> Canvas:
    """Draw groups of bars: per bin one bar of each series (look, name, bin -> share)."""
    names = list(series[0][2])
    canvas = Canvas(width, 214)
    frame = Frame(40, 40, width - 8, 176)
    draw_legend(canvas, 0, 14, [(f"bar {look}", name) for look, name, _ in series])
    scale = Scale(0, 1, frame.bottom, frame.top)
    draw_y_axis(canvas, frame, [(scale(tick), format_share(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)])
    step = frame.width / len(names)
    bar = min((step - 8) / len(series), 22)
    for index, name in enumerate(names):
        start = frame.left + step * (index + 0.5) - bar * len(series) / 2
        for bars, (look, label, shares) in enumerate(series):
            top = scale(shares[name])
            tip = f"{label}: {format_share(shares[name])} at {name}"
            canvas.rect(start + bar * bars, top, bar - 1, frame.bottom - top, f"bar {look}", tip)
    draw_x_axis(canvas, frame, [(frame.left + step * (i + 0.5), name) for i, name in enumerate(names)], what)
    return canvas


def draw_shares(width: float, rows: Sequence[tuple[str, Sequence[tuple[str, str, float | None]]]]) -> Canvas:
    """Draw horizontal bars of shares; a row is (name, [(look, whose, share)]); an unknown share is None."""
    bars = sum(len(entries) for _, entries in rows)
    canvas = Canvas(width, 26 + bars * 20 + len(rows) * 10 + 20)
    frame = Frame(132, 26, width - 52, canvas.height - 20)
    draw_legend(canvas, 0, 14, [(f"bar {look}", whose) for look, whose, _ in rows[0][1]])
    scale = Scale(0, 1, frame.left, frame.right)
    draw_x_axis(canvas, frame, [(scale(tick), format_share(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)], grid=True)
    y = frame.top + 6
    for name, entries in rows:
        canvas.text(0, y + 10 * len(entries) + 2, name, "name")
        for look, whose, share in entries:
            if share is None:
                canvas.text(frame.left + 4, y + 13, "none", "tick")
            else:
                canvas.rect(
                    frame.left, y + 2, scale(share) - frame.left, 15, f"bar {look}", f"{whose}: {format_share(share)}"
                )
                canvas.text(frame.right + 6, y + 14, format_share(share), "value")
            y += 20
        y += 10
    return canvas
