"""What the device was asked to do under the default and under a changed value: sizes, depth, shares."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.figures.axes import LEGEND_LINE, Frame, draw_legend, draw_x_axis, draw_y_axis, wrap_legend
from knobscope.figures.canvas import Canvas, cut_text
from knobscope.figures.scales import Scale, linear_ticks
from knobscope.text.formats import UNKNOWN, format_share, format_size


@dataclass(frozen=True)
class Sizes:
    """Requests by size in bytes, under a heading."""

    heading: str
    requests: Mapping[int, int]


@dataclass(frozen=True)
class SizeBin:
    """Requests between two powers of two, as shares of all: of the bytes in multiples of the unit, of the other bytes,
    and of the requests.
    """

    whole: float
    broken: float
    requests: float


def size_bins(requests: Mapping[int, int], unit: int) -> dict[int, SizeBin]:
    """Return what lies in each power of two (exponent); without a unit (0) all bytes are `broken`."""
    count = sum(requests.values()) or 1
    volume = sum(size * number for size, number in requests.items()) or 1
    bins: dict[int, SizeBin] = {}
    for size, number in requests.items():
        exponent = int(math.log2(size)) if size > 0 else 0
        before = bins.get(exponent, SizeBin(0.0, 0.0, 0.0))
        is_whole = bool(unit) and size % unit == 0
        share = size * number / volume
        bins[exponent] = SizeBin(
            before.whole + share * is_whole, before.broken + share * (not is_whole), before.requests + number / count
        )
    return bins


@dataclass(frozen=True)
class SizeMark:
    """A size in bytes to point out, such as the device's write unit."""

    name: str
    size: int


def draw_sizes(width: float, panels: Sequence[Sizes], marks: Sequence[SizeMark] = (), label: str = "writes") -> Canvas:
    """Draw shares of bytes (bars) and of requests (dots) by size, panels below each other on one axis.

    Bytes in multiples of the first mark's size are filled; all marks are lines in all panels.
    """
    unit = marks[0].size if marks else 0
    binned = [size_bins(panel.requests, unit) for panel in panels]
    used = {exponent for bins in binned for exponent in bins} | {int(math.log2(mark.size)) for mark in marks}
    first, last = min(used, default=12), max(used, default=12)
    first, last = first - (last == first), last + 1
    each, names = 124, _name_marks(marks)
    canvas = Canvas(width, each * len(panels) + 62 + 17 * len(names))
    for row, (dash, text) in enumerate(names):
        y = each * len(panels) + 73 + 17 * row
        canvas.line((0, y - 4), (24, y - 4), f"preferred{dash}")
        canvas.text(30, y, text, "tick")
    _draw_size_legend(canvas, each * len(panels) + 56, unit)
    step = (width - 48) / (last - first + 1)
    shares = [max(size_bin.whole + size_bin.broken, size_bin.requests) for bins in binned for size_bin in bins.values()]
    for index, (panel, bins) in enumerate(zip(panels, binned, strict=True)):
        frame = Frame(40, each * index + 26, width - 8, each * (index + 1) - 12)
        scale = Scale(0, max([0.01, *shares]), frame.bottom, frame.top)
        draw_y_axis(canvas, frame, [(scale(tick), format_share(tick)) for tick in linear_ticks(0, scale.high, 2)])
        canvas.text(0, frame.top - 9, cut_text(panel.heading, width, 14), "strong")
        for (dash, _), size in zip(names, sorted({mark.size for mark in marks}), strict=True):
            position = frame.left + step * (math.log2(size) - first + 0.5)
            canvas.line((position, frame.top), (position, frame.bottom), f"preferred{dash}")
        for exponent, size_bin in bins.items():
            _draw_bin(canvas, frame.left + step * (exponent - first), step, scale, exponent, size_bin, label)
        last_one = index == len(panels) - 1
        ticks = [(frame.left + step * (e - first + 0.5), _size_tick(e)) for e in _thinned(first, last, step)]
        draw_x_axis(canvas, frame, ticks if last_one else [], f"size of {label}" if last_one else "")
    return canvas


def _name_marks(marks: Sequence[SizeMark]) -> list[tuple[str, str]]:
    """Return (look, words) per size, the smallest first: marks of one size are one line."""
    sizes = sorted({mark.size for mark in marks})
    names = [f"{' and '.join(mark.name for mark in marks if mark.size == size)}: {format_size(size)}" for size in sizes]
    return [("" if row == 0 else " long", name) for row, name in enumerate(names)]


def _draw_bin(
    canvas: Canvas, x: float, step: float, scale: Scale, exponent: int, size_bin: SizeBin, label: str
) -> None:
    size, bar = format_size(2**exponent), min(step - 3, 34)
    left = x + (step - bar) / 2
    if size_bin.whole:
        tip = f"{format_share(size_bin.whole)} of the bytes in {label} from {size} on, multiples of the device's size"
        canvas.rect(left, scale(size_bin.whole), bar, scale(0) - scale(size_bin.whole), "bar whole", tip)
    if size_bin.broken:
        broken = format_share(size_bin.broken)
        tip = f"{broken} of the bytes in {label} from {size} on, not multiples of the device's size"
        top = scale(size_bin.whole + size_bin.broken)
        canvas.rect(left, top, bar, scale(size_bin.whole) - top, "bar broken", tip)
    tip = f"{format_share(size_bin.requests)} of the {label}, from {size} on"
    canvas.dot(left + bar / 2, scale(size_bin.requests), 3.2, "mark ink", tip)


def _draw_size_legend(canvas: Canvas, y: float, unit: int) -> None:
    entries = [("bar broken", "bytes")]
    if unit:
        entries = [("bar whole", f"bytes in multiples of {format_size(unit)}"), ("bar broken", "other bytes")]
    draw_legend(canvas, 0, y, entries)
    x = 5 + sum(29 + len(text) * 6.6 for _, text in entries)
    canvas.dot(x, y - 4, 3.2, "mark ink")
    canvas.text(x + 8, y, "requests", "tick")


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


def draw_depths(width: float, series: Sequence[tuple[str, str, Mapping[str, float]]]) -> Canvas:
    """Draw groups of bars: per bin one bar of each series (look, name, bin -> share)."""
    names = list(series[0][2])
    lines = wrap_legend([(f"bar {look}", name) for look, name, _ in series], width)
    top = 23.0 + LEGEND_LINE * len(lines)
    canvas = Canvas(width, top + 174)
    frame = Frame(40, top, width - 8, top + 136)
    draw_legend(canvas, 0, 14, *lines)
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
    ticks = [(frame.left + step * (i + 0.5), name) for i, name in enumerate(names)]
    draw_x_axis(canvas, frame, ticks, "requests in flight")
    return canvas


def draw_shares(width: float, rows: Sequence[tuple[str, Sequence[tuple[str, str, float | None]]]]) -> Canvas:
    """Draw horizontal bars of shares; a row is (name, [(look, series, share)]); an unknown share is None."""
    bars = sum(len(entries) for _, entries in rows)
    lines = wrap_legend([(f"bar {look}", series) for look, series, _ in rows[0][1]], width)
    top = 9.0 + LEGEND_LINE * len(lines)
    canvas = Canvas(width, top + bars * 20 + len(rows) * 10 + 20)
    frame = Frame(132, top, width - 52, canvas.height - 20)
    draw_legend(canvas, 0, 14, *lines)
    scale = Scale(0, 1, frame.left, frame.right)
    draw_x_axis(canvas, frame, [(scale(tick), format_share(tick)) for tick in (0, 0.25, 0.5, 0.75, 1)], grid=True)
    y = frame.top + 6
    for name, entries in rows:
        canvas.text(0, y + 10 * len(entries) + 2, name, "name")
        for look, series, share in entries:
            if share is None:
                canvas.text(frame.left + 4, y + 13, UNKNOWN, "tick")
            else:
                canvas.rect(
                    frame.left, y + 2, scale(share) - frame.left, 15, f"bar {look}", f"{series}: {format_share(share)}"
                )
                canvas.text(frame.right + 6, y + 14, format_share(share), "value")
            y += 20
        y += 10
    return canvas
