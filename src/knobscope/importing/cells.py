"""Reads CSV files whose columns have types; every cell that is wrong becomes a problem with its line."""

import csv
import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.specs.base import suggest
from knobscope.specs.source import SpecProblem, show_path

__all__ = ["Line", "Problems", "read_lines"]


@dataclass(frozen=True)
class Line:
    """One line of a table: its number in the file, and column -> value (None for an empty cell)."""

    number: int
    cells: Mapping[str, Any]

    def __getitem__(self, column: str) -> Any:
        """Return a cell, None where the file has no such column."""
        return self.cells.get(column)


class Problems:
    """Collects what is wrong in all files, to be told at once."""

    def __init__(self) -> None:
        self.found: list[SpecProblem] = []

    def add(self, path: Path, line: int, column: str, found: str, expected: str) -> None:
        """Note one problem."""
        self.found.append(SpecProblem(show_path(path), line, column, found, expected))

    def raise_if_any(self) -> None:
        """Raise UserError with all problems, in the order of files and lines."""
        if self.found:
            count = f"{len(self.found)} problem{'s' if len(self.found) != 1 else ''} in the table"
            raise UserError("\n".join([count, *map(str, sorted(set(self.found)))]))


def read_lines(
    path: Path, columns: Mapping[str, str], required: Iterable[str], problems: Problems
) -> tuple[list[Line], list[str]]:
    """Return the lines of a CSV with header, and the columns it has; wrong cells are None and noted as problems."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        problems.add(path, 1, "", "no such file", "a CSV file with a header line")
        return [], []
    except (OSError, UnicodeDecodeError) as error:
        problems.add(path, 1, "", f"a file that cannot be read ({error})", "a CSV file in UTF-8")
        return [], []
    reader = csv.reader(text.splitlines(keepends=True), strict=True)
    lines: list[Line] = []
    header: list[str] = []
    try:
        header = [name.strip() for name in next(reader, [])]
        _check_header(path, header, columns, required, problems)
        for cells in reader:
            if cells:
                lines.append(_read_line(path, reader.line_num, header, cells, columns, problems))
    except csv.Error as error:
        problems.add(path, max(reader.line_num, 1), "", f"a line that is no CSV ({error})", "quotes that are closed")
    return lines, header


def _check_header(
    path: Path, header: Sequence[str], columns: Mapping[str, str], required: Iterable[str], problems: Problems
) -> None:
    if not header:
        problems.add(path, 1, "", "an empty file", "a header line with the names of the columns")
        return
    for name in required:
        if name not in header:
            problems.add(path, 1, name, "no such column", "this column, which is required")
    for index, name in enumerate(header):
        if name in header[:index]:
            problems.add(path, 1, name, "the column a second time", "each column once")
        elif name not in columns:
            problems.add(path, 1, name or f"column {index + 1}", "an unknown column", suggest(name, list(columns)))


def _read_line(
    path: Path,
    number: int,
    header: Sequence[str],
    cells: Sequence[str],
    columns: Mapping[str, str],
    problems: Problems,
) -> Line:
    if len(cells) != len(header):
        problems.add(path, number, "", f"{len(cells)} cells", f"{len(header)}, as in the header")
    values: dict[str, Any] = {}
    for name, cell in zip(header, cells, strict=False):
        kind = columns.get(name)
        text = cell.strip()
        if kind is None or not text:
            continue
        expected, convert = _KINDS[kind]
        try:
            values[name] = convert(text)
        except ValueError:
            problems.add(path, number, name, repr(text), expected)
    return Line(number, values)


def _number(text: str) -> float:
    value = float(text)
    if not math.isfinite(value):
        raise ValueError(text)
    return value


def _integer(text: str) -> int:
    value = _number(text)
    if value != int(value):
        raise ValueError(text)
    return int(text) if text.lstrip("+-").isdigit() else int(value)


def _boolean(text: str) -> bool:
    return {"true": True, "1": True, "false": False, "0": False}[text.lower()]


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    naive = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat()


def _checked(convert: Callable[[str], Any]) -> Callable[[str], Any]:
    def checked(text: str) -> Any:
        try:
            return convert(text)
        except (KeyError, OverflowError) as error:
            raise ValueError(text) from error

    return checked


#: DuckDB type -> what a cell has to be, in words, and how it is read.
_KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "VARCHAR": ("text", str),
    "DOUBLE": ("a finite number", _checked(_number)),
    "INTEGER": ("a whole number", _checked(_integer)),
    "BIGINT": ("a whole number", _checked(_integer)),
    "UBIGINT": ("a whole number", _checked(_integer)),
    "BOOLEAN": ("true or false", _checked(_boolean)),
    "TIMESTAMP": ("a time such as 2026-11-21T08:30:00 (UTC)", _checked(_moment)),
}
