"""A figure: how it is drawn at a width, what it says in words, the numbers behind it, and the query that gave them."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from knobscope.cells import to_csv
from knobscope.durable_files import write_text
from knobscope.figures.canvas import Canvas
from knobscope.study_data.rows import Rows

#: Widths in pixels that figures are drawn for: half the page or a phone, and the whole page.
NARROW, WIDE = 400, 880


@dataclass(frozen=True)
class Figure:
    """One picture. `data` is what it shows, a row per mark; `wide` figures take the width of the page.

    `query` is the SQL behind the data where that is not simply the one of its rows.
    """

    name: str
    title: str
    description: str
    draw: Callable[[float], Canvas]
    data: Sequence[Mapping[str, Any]]
    caption: str = ""
    wide: bool = False
    query: str = ""

    @property
    def sql(self) -> str:
        """The queries that give the numbers again from the study's database; empty where none is known."""
        return self.query or (self.data.query if isinstance(self.data, Rows) else "")

    def csv(self) -> str:
        """Return the data as a CSV table with a head."""
        return to_csv(self.data)

    def svgs(self) -> list[str]:
        """Return the <svg> elements for the page: of a wide figure one for screens and one for phones."""
        if not self.wide:
            return [self.draw(NARROW).svg(self.description)]
        return [
            self.draw(WIDE).svg(self.description, "at-wide"),
            self.draw(NARROW).svg(self.description, "at-narrow"),
        ]

    def standalone(self) -> str:
        """Return the picture as an SVG file that carries its own style."""
        svg = self.draw(WIDE if self.wide else NARROW).standalone(self.description)
        head, body = svg.split(">", 1)
        return f'<?xml version="1.0" encoding="UTF-8"?>\n{head}><style>{figure_style()}</style>{body}\n'


@cache
def figure_style() -> str:
    """Return the style sheet of all figures, palette included."""
    return files("knobscope.figures").joinpath("figures.css").read_text(encoding="utf-8")


def slug(*words: object) -> str:
    """Return a name for files and anchors out of words."""
    return re.sub(r"[^a-z0-9]+", "-", " ".join(map(str, words)).lower()).strip("-")


def write_figures(figures: Sequence[Figure], directory: Path) -> list[Path]:
    """Write each figure as SVG, next to it the CSV of its data and the SQL behind that; returns the SVG files.

    Words that differ in signs only have one slug: of figures with one name, the second gets a 2, and so on.
    """
    directory.mkdir(parents=True, exist_ok=True)
    written: list[Path] = []
    for figure in figures:
        names = (figure.name, *(f"{figure.name}-{number}" for number in range(2, len(figures) + 1)))
        path = next(path for name in names if (path := directory / f"{name}.svg") not in written)
        write_text(path, figure.standalone())
        write_text(path.with_suffix(".csv"), figure.csv())
        if figure.sql:
            write_text(path.with_suffix(".sql"), figure.sql + "\n")
        written.append(path)
    return written
