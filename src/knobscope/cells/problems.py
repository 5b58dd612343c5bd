"""Collects what is wrong in tables, by file, line and column."""

from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.reading.source import SpecProblem, show_path
from knobscope.text.formats import plural

#: A table that is wrong throughout is known to be after so many lines of it.
_MOST_SHOWN = 1000


class Problems:
    """Collects what is wrong in all files, to be reported at once."""

    def __init__(self) -> None:
        self.found: set[SpecProblem] = set()
        self._cells: set[tuple[Path, int, str]] = set()
        self._headers: dict[Path, int] = {}

    def add(self, path: Path, line: int, column: str, found: str, expected: str) -> None:
        """Note one problem."""
        self.found.add(SpecProblem(show_path(path), line, column, found, expected))
        self._cells.add((path, line, column))

    def note_header(self, path: Path, line: int) -> None:
        """Remember on which line the header of a table is."""
        self._headers[path] = line

    def add_column(self, path: Path, column: str, found: str, expected: str) -> None:
        """Note a problem of a column as a whole, on the line of the header."""
        self.add(path, self._headers.get(path, 1), column, found, expected)

    def has(self, path: Path, line: int, column: str) -> bool:
        """Whether something is wrong with this cell."""
        return (path, line, column) in self._cells

    def raise_if_any(self) -> None:
        """Raise UserError with all problems, in the order of files and lines."""
        if self.found:
            head = f"{plural(len(self.found), 'problem')} in the table".replace("\u00a0", " ")
            more = len(self.found) - _MOST_SHOWN
            shown = list(map(str, sorted(self.found)[:_MOST_SHOWN]))
            raise UserError("\n".join([head, *shown, *([f"and {more} more like these"] if more > 0 else [])]))
