"""A picture of a trace: every request at its time and address, coloured by file or by operation."""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from knobscope.commands.trace.columns import OPERATIONS, fetch_columns, quote
from knobscope.commands.trace.reading import Trace
from knobscope.durable_files import write_text

if TYPE_CHECKING:
    import duckdb

    from knobscope.figures import Figure
    from knobscope.figures.axes import Frame
    from knobscope.figures.canvas import Canvas
    from knobscope.figures.scales import Scale

_HEIGHT, _LEFT, _TOP = 420, 56, 26
_CELL = 2  # pixels; all requests of one colour in a cell are one mark, so that a long trace makes no large file
_FILE_LOOKS = ("line-a", "line-b", "line-d", "plain")  # the last one for all other files
_MAX_BANDS = 4
_WIDE_GAP = 0.1  # of all addresses between the lowest and the highest
_BETWEEN = 26  # pixels between bands, for the name of the axis
_UNITS = {"GiB": 2**30, "MiB": 2**20, "KiB": 2**10}


@dataclass(frozen=True)
class Group:
    """Requests of one colour: times in ns and addresses in bytes, as many of each."""

    name: str
    look: str
    times: NDArray[np.int64]
    addresses: NDArray[np.int64]


def draw_scatter(trace: Trace, path: Path, colour: Literal["file", "op"] | None = None) -> None:
    """Write the picture as SVG; by default colours mean files, where the trace knows any.

    Files whose names differ in digits only go together; the three largest groups get a colour of their own.
    """
    has_files = trace.connection.execute("SELECT count(file) > 0 FROM requests").fetchall()[0][0]
    chosen = colour or ("file" if has_files else "op")
    figure = _make_figure(_list_groups(trace.connection, chosen), trace.path.name, chosen)
    write_text(path, figure.standalone())


def _list_groups(connection: "duckdb.DuckDBPyConnection", colour: str) -> list[Group]:
    """Return the groups with most requests, largest first, and what is left over as the last one."""
    name = "regexp_replace(coalesce(file, 'no file'), '[0-9]+', '#', 'g')"
    if colour == "op":
        name = "CASE op " + " ".join(f"WHEN {index} THEN '{word}'" for index, word in enumerate(OPERATIONS)) + " END"
    counted = f"SELECT {name} AS name, count(*) AS n FROM requests WHERE op <> 3 GROUP BY 1 ORDER BY 2 DESC"  # noqa: S608
    from knobscope.figures import OP_LOOKS

    names = [name for name, _ in connection.execute(counted).fetchall()]
    if len(names) > len(_FILE_LOOKS):
        names = [*names[: len(_FILE_LOOKS) - 1], "others"]
    looks = [OP_LOOKS[name] for name in names] if colour == "op" else _FILE_LOOKS
    listed = f"list_position([{', '.join(map(quote, names))}]::VARCHAR[], {name})"
    groups, times, addresses = fetch_columns(
        connection,
        f"SELECT coalesce({listed}, {len(names)}) AS g, ts_ns, lba * 512 AS address FROM requests WHERE op <> 3",  # noqa: S608
    )
    return [
        Group(name, look, times[groups == index], addresses[groups == index])
        for index, (name, look) in enumerate(zip(names, looks, strict=False), 1)
    ]


def _make_figure(groups: list[Group], title: str, colour: str) -> "Figure":
    from knobscope.figures import Figure

    data = [{"name": group.name, "requests": len(group.times)} for group in groups]
    counts = ", ".join(f"{row['requests']} of {row['name']}" for row in data)
    description = f"Address on the device over time, by {colour}: {counts}"
    return Figure("trace", title, description, lambda width: _draw(width, groups), data, wide=True)


def _draw(width: float, groups: list[Group]) -> "Canvas":
    from knobscope.figures.axes import LEGEND_LINE, draw_legend, draw_x_axis, wrap_legend
    from knobscope.figures.canvas import Canvas
    from knobscope.figures.scales import Scale, linear_ticks, short_number

    lines = wrap_legend([(f"bar {group.look}", group.name) for group in groups], width - _LEFT)
    canvas = Canvas(width, _HEIGHT + LEGEND_LINE * (len(lines) - 1))
    nothing = np.empty(0, np.int64)  # a trace of flushes alone has no groups
    times = np.concatenate([nothing, *(group.times for group in groups)])
    begin, end = (int(times.min()), int(times.max())) if len(times) else (0, 1)
    across = Scale(0, max(end - begin, 1) / 1e9, _LEFT, width - 8)
    bands = _find_bands(np.concatenate([nothing, *(group.addresses for group in groups)]))
    frames = _stack_frames(bands, across)
    for (low, high), frame in zip(bands, frames, strict=True):
        inside = [(group.addresses >= low) & (group.addresses <= high) for group in groups]
        shown = [
            replace(g, times=g.times[m] - begin, addresses=g.addresses[m]) for g, m in zip(groups, inside, strict=True)
        ]
        _draw_band(canvas, frame, across, shown, (low, max(high, low + 1)))
    draw_x_axis(canvas, frames[0], [(across(t), short_number(t)) for t in linear_ticks(0, across.high, 8)], "s")
    draw_legend(canvas, _LEFT, _HEIGHT - 6, *lines)
    return canvas


def _find_bands(addresses: NDArray[np.int64]) -> list[tuple[int, int]]:
    """Return ranges of addresses that hold all requests; what is empty and wide between them is left out."""
    if not len(addresses):
        return [(0, 1)]
    used = np.unique(addresses)
    gaps = np.diff(used)
    widest = np.argsort(gaps)[::-1][: _MAX_BANDS - 1]
    cuts = np.sort(widest[gaps[widest] > _WIDE_GAP * np.ptp(used)])
    lows, highs = [used[0], *used[cuts + 1]], [*used[cuts], used[-1]]
    return [(int(low), int(high)) for low, high in zip(lows, highs, strict=True)]


def _stack_frames(bands: list[tuple[int, int]], across: "Scale") -> "list[Frame]":
    """Return a frame per band, the lowest addresses at the bottom; wider bands are higher."""
    from knobscope.figures.axes import Frame

    bottom, top = _HEIGHT - 56.0, float(_TOP)
    widths = np.array([high - low for low, high in bands], float)
    shares = np.maximum(widths / max(widths.sum(), 1), 0.15)
    heights = shares / shares.sum() * (bottom - top - _BETWEEN * (len(bands) - 1))
    frames = []
    for height in heights:
        frames.append(Frame(across.start, bottom - float(height), across.end, bottom))
        bottom -= float(height) + _BETWEEN
    return frames


def _draw_band(canvas: "Canvas", frame: "Frame", across: "Scale", groups: list[Group], ends: tuple[int, int]) -> None:
    """Draw the requests between two addresses."""
    from knobscope.figures.axes import draw_y_axis
    from knobscope.figures.scales import Scale, linear_ticks, short_number

    unit = next((name for name, size in _UNITS.items() if ends[1] >= 2 * size), "KiB")
    low, high = (end / _UNITS[unit] for end in ends)
    up = Scale(low, high, frame.bottom, frame.top)
    ticks = linear_ticks(low, high, max(int(frame.height / 50), 1))
    draw_y_axis(canvas, frame, [(up(tick), short_number(tick)) for tick in ticks], f"address, {unit}")
    for group in groups:
        columns = _cell(group.times / 1e9, across.low, across.high, frame.width)
        rows = _cell(group.addresses / _UNITS[unit], low, high, frame.height)
        column, row = np.divmod(np.unique(columns * 10_000 + rows), 10_000)
        points = zip((frame.left + _CELL * column).tolist(), (frame.bottom - 1 - _CELL * row).tolist(), strict=True)
        canvas.points(list(points), f"points {group.look}")


def _cell(values: NDArray[np.float64], low: float, high: float, pixels: float) -> NDArray[np.int64]:
    """Return in which cell of an axis of so many pixels the values lie."""
    cells = int(pixels) // _CELL
    return np.clip((values - low) / (high - low) * cells, 0, cells - 1).astype(np.int64)
