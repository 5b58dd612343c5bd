"""Tables of coloured tiles: a change per row and column, with the number on each tile.

One picture for two questions: the same values on several devices, and a grid of two knobs, with a third one as tiles of
tiles (Hui et al., "On the Feasibility and Benefits of Extensive Evaluation", SIGMOD 2024, figure 6).
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from knobscope.figures.canvas import Canvas, cut_text, text_width
from knobscope.figures.forest import shorten

_ROW, _GROUP, _HEAD = 26, 28, 46
#: Factors from which a tile is darker. A picture takes the first of which its largest change is no more than so many
#: times the last one: pictures of usual effects can be compared, and one of large effects still tells them apart.
_STEPS = ((1.1, 1.5, 3.0), (1.2, 3.0, 10.0), (1.5, 5.0, 30.0), (2.0, 10.0, 100.0))
_DARKEST = 3.5


@dataclass(frozen=True)
class Tile:
    """A change as a natural-log ratio, above 0 is better; one that is not clear has no colour."""

    change: float
    text: str
    tip: str
    clear: bool = True
    framed: bool = False


@dataclass(frozen=True)
class TileRow:
    """A row of tiles, one per column; None: not known."""

    group: str
    note: str
    label: str
    tiles: Sequence[Tile | None]


def draw_tiles(
    width: float,
    columns: Sequence[str],
    rows: Sequence[TileRow],
    across: str = "",
    legend: tuple[str, str] | None = None,
) -> Canvas:
    """Draw rows of tiles under the names of their columns.

    `across` says what the columns are; `legend` names what is slower and what is faster than 1x.
    """
    groups = [(key, list(members)) for key, members in groupby(rows, key=lambda row: (row.group, row.note))]
    steps = _choose_steps([tile.change for row in rows for tile in row.tiles if tile is not None and tile.clear])
    height = _HEAD + sum(_GROUP * bool(name) + _ROW * len(members) for (name, _), members in groups)
    canvas = Canvas(width, height + 34)
    left = min(0.36 * width, max(text_width(row.label) for row in rows) + 20)
    step = (width - left) / len(columns)
    if across:
        canvas.text(left, 14, across, "label")
    for index, column in enumerate(columns):
        name = cut_text(column, step - 4)
        canvas.text(left + step * (index + 0.5), _HEAD - 12, name, "tick", "middle")
    y = float(_HEAD)
    for (name, note), members in groups:
        if name:
            canvas.text(0, y + 18, name, "strong")
            after = text_width(name, 14) + 8
            canvas.text(after, y + 18, cut_text(note, width - after), "note")
            y += _GROUP
        for row in members:
            canvas.text(10, y + 17, shorten(row.label, int(left / text_width("m")) - 1), "name")
            for index, tile in enumerate(row.tiles):
                _draw_tile(canvas, left + step * index, y, step, tile, steps)
            y += _ROW
    _draw_key(canvas, height + 22, legend or ("slower", "faster"), steps)
    return canvas


def _choose_steps(changes: Sequence[float]) -> Sequence[float]:
    largest = math.exp(max(map(abs, changes), default=0.0))
    return next((steps for steps in _STEPS if largest <= _DARKEST * steps[-1]), _STEPS[-1])


def _draw_tile(canvas: Canvas, x: float, y: float, width: float, tile: Tile | None, steps: Sequence[float]) -> None:
    if tile is None:
        canvas.text(x + width / 2, y + 17, "–", "tick", "middle")
        return
    look = _look(tile.change, steps) if tile.clear else "unclear"
    canvas.rect(x + 1, y + 1, width - 2, _ROW - 2, f"tile {look}{' framed' if tile.framed else ''}", tile.tip)
    canvas.text(x + width / 2, y + 17, tile.text, "on-tile" if tile.clear else "tick", "middle")


def _look(change: float, steps: Sequence[float]) -> str:
    """Return how a tile looks: the direction, and one of four strengths."""
    strength = sum(abs(change) >= math.log(step) for step in steps) + 1
    return f"{'better' if change > 0 else 'worse'} s{strength}"


def _draw_key(canvas: Canvas, y: float, legend: tuple[str, str], steps: Sequence[float]) -> None:
    """Draw what the colours mean, from much slower to much faster."""
    worse, better = legend
    canvas.text(0, y, worse, "tick")
    x = text_width(worse, 11) + 6
    for look in ("worse s4", "worse s3", "worse s2", "worse s1", "better s1", "better s2", "better s3", "better s4"):
        canvas.rect(x, y - 10, 14, 12, f"tile {look}")
        x += 15
    canvas.text(x + 6, y, f"{better}; steps at {', '.join(f'{step:g}x' for step in steps)}", "tick")
