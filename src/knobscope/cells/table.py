"""Reads files of separated values as text, whatever separates them: CSV, semicolons, tabs, with or without a BOM."""

import csv
import re
from array import array
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import chain, islice, repeat
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from knobscope.cells.problems import Problems
from knobscope.errors import UserError
from knobscope.specs.reading.base import suggest

_DELIMITERS = ",;\t|"
#: So many texts of a column are shown.
_MOST_SHOWN = 10
#: A header has names, and not only such texts.
_NUMBER = re.compile(r"[-+]?[0-9][0-9.,]*([eE][-+]?[0-9]+)?")
#: Lines that show what separates cells.
_LOOKED_AT = 50


@dataclass
class Column:
    """The cells of a column: each row's text is `texts[codes[row]]`, without spaces around it."""

    texts: list[str] = field(default_factory=list)
    codes: "array[int]" = field(default_factory=lambda: array("I"))

    def count(self, text: str) -> int:
        """Return how many rows hold a text."""
        return self.codes.count(self.texts.index(text))

    def replaced(self, rows: NDArray[np.bool_], text: str) -> "Column":
        """Return the column with another text in some rows."""
        codes = np.where(rows, len(self.texts), np.asarray(self.codes))
        return Column([*self.texts, text], array("I", codes.astype(np.uint32).tobytes()))

    def counts(self) -> dict[str, int]:
        """Return how many rows hold each text."""
        rows = np.bincount(np.asarray(self.codes, np.int64), minlength=len(self.texts))
        return dict(zip(self.texts, rows.tolist(), strict=True))

    def first(self, text: str) -> int:
        """Return the first row that holds a text."""
        return self.codes.index(self.texts.index(text))


@dataclass
class TextTable:
    """A table as text: columns by name, and the line of the file on which each row begins."""

    path: Path
    columns: dict[str, Column]
    lines: "array[int]"

    def __len__(self) -> int:
        """Return the number of rows."""
        return len(self.lines)

    def rows_failed(self, failed: Sequence[str], response: str) -> tuple[NDArray[np.bool_], list[str], list[str]]:
        """Return which rows failed by COLUMN=TEXT among `failed`, the columns that say so, and what else `failed` has.

        UserError: the column does not hold the text, or there is none, and the response does not hold COLUMN=TEXT.
        """
        rows, names, rest = np.zeros(len(self), bool), [], []
        for text in failed:
            name, equals, word = text.partition("=")
            if not equals or name not in self.columns:
                if equals and response in self.columns and text not in self.columns[response].texts:
                    expected = suggest(name, list(self.columns))
                    raise UserError(f"--failed-value is {text!r}; found no column {name!r}; expected {expected}")
                rest.append(text)
                continue
            column = self.columns[name]
            if word not in column.texts:
                shown = ", ".join(map(repr, column.texts[:_MOST_SHOWN]))
                raise UserError(f"--failed-value is {text!r}; column {name} holds {shown}")
            rows |= np.asarray(column.codes) == column.texts.index(word)
            names.append(name)
        return rows, names, rest

    def uniform(self, text: str) -> Column:
        """Return a column that has the same text in every row."""
        return Column([text], array("I", bytes(4 * len(self))))

    def rows_with(self, column: str, text: str) -> tuple[int, str]:
        """Return the first line that holds a text, and the text with how often it is there, to be shown."""
        cells = self.columns[column]
        count = cells.count(text)
        more = f" ({count} rows)" if count > 1 else ""
        return self.lines[cells.first(text)], f"{text!r}{more}" if text else f"nothing{more}"


def read_text_table(path: Path, problems: Problems) -> TextTable | None:
    """Read a table with a header line; None where there is none. What is wrong goes to `problems`, by line."""
    try:
        with path.open(encoding=_encoding(path), newline="") as file:
            comments = _count_comments(file)
            file.seek(0)
            delimiter = _find_delimiter(list(islice(file, comments, comments + _LOOKED_AT)))
            file.seek(0)
            rows = csv.reader(islice(file, comments, None), delimiter=delimiter, strict=True)
            return _read(path, rows, delimiter, comments, problems)
    except FileNotFoundError:
        problems.add(path, 1, "", "no such file", "a CSV file with a header line")
    except OSError as error:
        problems.add(path, 1, "", f"a file that cannot be read ({error.strerror})", "a CSV file in UTF-8")
    except UnicodeError:
        number, line = _find_undecodable(path)
        problems.add(path, number, "", f"{line!r:.80}, which is no UTF-8", "a CSV file in UTF-8 or UTF-16")
    return None


def _count_comments(lines: Iterable[str]) -> int:
    """Return how many lines begin with # above the header, which may be the last of them: then data follows."""
    before: list[str] = []
    for count, line in enumerate(lines):
        cells = re.split(f"[{_DELIMITERS}]", line)
        if not line.startswith("#"):
            is_data = any(_NUMBER.fullmatch(cell.strip(' "\r\n')) for cell in cells)
            return count - 1 if is_data and len(cells) == len(before) else count
        before = cells
    return 0


def _find_undecodable(path: Path) -> tuple[int, bytes]:
    """Return number and bytes of the first line that is no UTF-8; of a file in UTF-16, of its first line."""
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            try:
                line.decode()
            except UnicodeDecodeError:
                return number, line.rstrip()
    return 1, b""


def _encoding(path: Path) -> str:
    with path.open("rb") as file:
        return "utf-16" if file.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _find_delimiter(lines: Sequence[str]) -> str:
    """Return what separates the header into most columns, where as many are in the other lines."""

    def judge(delimiter: str) -> tuple[bool, int]:
        try:
            sizes = [len(cells) for cells in csv.reader(lines, delimiter=delimiter) if cells]
        except csv.Error:
            return False, 0
        return len(set(sizes[:-1] or sizes)) == 1 and max(sizes) > 1, sizes[0] if sizes else 0

    return max(_DELIMITERS, key=judge)


def _read(path: Path, reader: Any, delimiter: str, comments: int, problems: Problems) -> TextTable | None:
    names: list[str] = []
    columns: list[Column] = []
    codes: list[dict[str, int]] = []  # of each column: text -> code
    lines = array("Q")
    problems.note_header(path, comments + 1)
    try:
        names = [name.strip() or f"Unnamed: {index}" for index, name in enumerate(next(reader, []))]
        columns, codes = [Column() for _ in names], [{} for _ in names]
        before = comments + reader.line_num
        for cells in reader:
            line, before = before + 1, comments + reader.line_num
            if not cells:
                continue
            if len(cells) != len(names):
                shown = "" if delimiter == "," else f" (separated by {delimiter!r})"
                problems.add(path, line, "", f"{len(cells)} cells{shown}", f"{len(names)}, as in the header")
            lines.append(line)
            for column, text_codes, cell in zip(columns, codes, chain(cells, repeat("")), strict=False):
                column.codes.append(text_codes.setdefault(cell.strip(), len(text_codes)))
    except csv.Error as error:
        line = comments + max(reader.line_num, 1)
        problems.add(path, line, "", f"a line that is no CSV ({error})", "quotes that are closed")
    if not names:
        problems.add(path, 1, "", "an empty file", "a header line with the names of the columns")
        return None
    if all(map(_NUMBER.fullmatch, names)):
        problems.add_column(path, "", "a line of numbers", "a header line with the names of the columns")
        return None
    for column, text_codes in zip(columns, codes, strict=True):
        column.texts = list(text_codes)
    for index, name in enumerate(names):
        if name in names[:index]:
            problems.add_column(path, name, "the column a second time", "each column once")
    return TextTable(path, dict(zip(names, columns, strict=True)), lines)
