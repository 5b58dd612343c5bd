"""Reads CSV files whose columns have types; every cell that is wrong becomes a problem with its line."""

import re
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import numpy as np

from knobscope.cells import FAILURE_WORDS, TRUTH, Problems, TextTable, read_numbers
from knobscope.specs.reading.base import suggest

#: Whole numbers as DuckDB has them: from, and below.
_WHOLE = {"INTEGER": (-(1 << 31), 1 << 31), "BIGINT": (-(1 << 63), 1 << 63), "UBIGINT": (0, 1 << 64)}
#: Figures whose products with each other DuckDB still has.
_MOST_REAL = 1e18
#: Texts that may have several lines: words of programs.
_SEVERAL_LINES = ("reason", "disturbance", "first_failure", "log_tail")
#: What would not stay text where it is shown or written: line breaks, escape sequences, marks that turn text around.
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")
_CONTROL_IN_LINES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069]")

#: End of a column's name -> unit -> scale to the column's unit.
_UNITS = {
    "_us": {"ns": 1e-3, "us": 1, "µs": 1, "μs": 1, "ms": 1e3, "s": 1e6},
    "_ns": {"ns": 1, "us": 1e3, "µs": 1e3, "μs": 1e3, "ms": 1e6, "s": 1e9},
    "_s": {"us": 1e-6, "ms": 1e-3, "s": 1, "min": 60, "h": 3600},
    "_ops": {"ops/s": 1, "ops": 1, "k": 1e3, "K": 1e3, "M": 1e6, "tps": 1, "/s": 1},
    "_share": {"%": 0.01},
}


@dataclass(frozen=True)
class _Rows:
    """The cells of a table: column -> code of each row, and the value of each code."""

    codes: dict[str, Sequence[int]]
    values: dict[str, Sequence[Any]]


@dataclass(frozen=True, slots=True)
class Line:
    """One line of a table: its number in the file, and column -> value (None for an empty cell)."""

    number: int
    rows: _Rows
    index: int

    def __getitem__(self, column: str) -> Any:
        """Return a cell, None where the file has no such column."""
        codes = self.rows.codes.get(column)
        return None if codes is None else self.rows.values[column][codes[self.index]]

    @property
    def cells(self) -> dict[str, Any]:
        """The cells that hold something, by column."""
        return {name: value for name in self.rows.codes if (value := self[name]) is not None}


def read_cells(
    table: TextTable,
    columns: Mapping[str, str],
    required: Mapping[str, str],
    problems: Problems,
    decimal: str | None = None,
) -> tuple[list[Line], list[str]]:
    """Return the lines of a table, and the columns it has; wrong cells are None and noted as problems.

    `required` are columns that have to be there, with what is expected where one is not.
    """
    header = [name for name in table.columns if not name.startswith("Unnamed:")]
    doubt_points = has_decimal_commas(table, columns, decimal)
    _check_header(table, columns, required, problems)
    known_names = [name for name in header if name in columns]
    rows = _Rows(
        {name: table.columns[name].codes for name in known_names},
        {name: _read_column(table, name, columns[name], problems, decimal, doubt_points) for name in known_names},
    )
    if "throughput_ops" in known_names:  # a word for failure there is the status of a run
        rows.codes["failure"] = rows.codes["throughput_ops"]
        rows.values["failure"] = [_status_of(text) for text in table.columns["throughput_ops"].texts]
    return [Line(number, rows, index) for index, number in enumerate(table.lines)], header


def _check_header(
    table: TextTable, columns: Mapping[str, str], required: Mapping[str, str], problems: Problems
) -> None:
    for name, expected in required.items():
        if name not in table.columns:
            problems.add_column(table.path, name, "no such column", expected)
    for name in table.columns:
        if name not in columns:
            problems.add_column(table.path, name, "an unknown column", suggest(name, list(columns)))


def has_decimal_commas(table: TextTable, columns: Mapping[str, str], decimal: str | None) -> bool:
    """Whether a column of numbers shows commas before decimals: then 1.234 elsewhere may be more than a thousand."""
    numeric = [name for name in table.columns if columns.get(name) in _NUMERIC]
    shown = (read_numbers([text for text in table.columns[name].texts if text], decimal=decimal) for name in numeric)
    return any(numbers.decimal == "," for numbers in shown)


def _read_column(
    table: TextTable, name: str, kind: str, problems: Problems, decimal: str | None, doubt_points: bool
) -> list[Any]:
    """Return the value of each distinct text of a column, None for nothing and what cannot be read."""
    texts = table.columns[name].texts
    expected, read = _KINDS[kind]
    filled_texts = [text for text in texts if text]
    values: Mapping[str, Any]
    if kind in _NUMERIC:
        values, expected = _read_numbers(name, kind, filled_texts, expected, decimal, doubt_points)
    else:
        values = _read_each(name, filled_texts, read)
        expected = _EXPECTED_TEXT if kind == "VARCHAR" else expected
    for text in filled_texts:
        if text not in values and not (name == "throughput_ops" and text.lower() in FAILURE_WORDS):
            _note_all(table, name, text, expected, problems)
    return [values.get(text) for text in texts]


def _status_of(text: str) -> str | None:
    if not text or text.lower() not in FAILURE_WORDS:
        return None
    return "timeout" if "time" in text.lower() else "failed_run"


def _read_each(name: str, texts: Sequence[str], read: Callable[[str], Any]) -> dict[str, Any]:
    control = _CONTROL_IN_LINES if name in _SEVERAL_LINES else _CONTROL
    values = {}
    for text in texts:
        try:
            if not control.search(text):
                values[text] = read(text)
        except (ValueError, KeyError, OverflowError):
            continue
    return values


def _read_numbers(
    name: str, kind: str, texts: Sequence[str], expected: str, decimal: str | None, doubt_points: bool
) -> tuple[dict[str, Any], str]:
    """Return the numbers of a column, in the unit that its name says, and what is expected of the others."""
    target = next((units for end, units in _UNITS.items() if name.endswith(end)), {})
    numbers = read_numbers(texts, decimal=decimal, target=target, doubt_points=doubt_points)
    if numbers.problem is not None:
        return {}, f"{expected}; {numbers.problem[0]!r} {numbers.problem[1]}: {numbers.problem[2]}"
    if numbers.notes:
        print(f"{name}: numbers, {', '.join(numbers.notes)}", file=sys.stderr)
    if kind == "DOUBLE":
        return {text: float(value) for text, value in numbers.values.items() if abs(value) < _MOST_REAL}, expected
    low, high = _WHOLE[kind]
    whole = {text: value for text, value in numbers.values.items() if low <= value < high}
    return {text: int(value) for text, value in whole.items() if value == int(value)}, expected


def _note_all(table: TextTable, name: str, text: str, expected: str, problems: Problems) -> None:
    """Note a text in every line that holds it."""
    column = table.columns[name]
    for row in np.flatnonzero(np.asarray(column.codes) == column.texts.index(text)):
        problems.add(table.path, table.lines[int(row)], name, repr(text), expected)


def _moment(text: str) -> str:
    moment = datetime.fromisoformat(text)
    naive = moment if moment.tzinfo is None else moment.astimezone(UTC).replace(tzinfo=None)
    return naive.isoformat()


_EXPECTED_TEXT = "text in one line without control characters"
_NUMERIC = ("DOUBLE", "INTEGER", "BIGINT", "UBIGINT")
#: DuckDB type -> what a cell has to be, in words, and how it is read where it is no number.
_KINDS: dict[str, tuple[str, Callable[[str], Any]]] = {
    "VARCHAR": ("text", str),
    "DOUBLE": ("a finite number", str),
    "INTEGER": ("a whole number", str),
    "BIGINT": ("a whole number", str),
    "UBIGINT": ("a whole number", str),
    "BOOLEAN": ("true or false", lambda text: TRUTH[text.lower()]),
    "TIMESTAMP": ("a time such as 2026-11-21T08:30:00 (UTC)", _moment),
}
