"""The columns of a table as a frame of values, with a line on stderr that says how each was read."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from knobscope.cells import Column, Problems, Reading, TextTable, read_factor, read_measured

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Spelling:
    """What the user says of cells: what separates decimals, what words stand for, and which columns are words."""

    decimal: str | None = None
    values: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    categories: tuple[str, ...] = ()


def read_columns(
    table: TextTable, response: str, factors: Sequence[str], spelling: Spelling, failed_values: Sequence[str]
) -> tuple["pd.DataFrame", NDArray[np.bool_]]:
    """Return factors and response as values, and which rows failed; says on stderr how each column was read.

    UserError names all cells that cannot be read, by line.
    """
    import pandas as pd

    readings = _read_all(table, response, factors, spelling, failed_values, doubt_points=False)
    if any(reading.decimal == "," for reading in readings.values()):
        readings = _read_all(table, response, factors, spelling, failed_values, doubt_points=True)
    problems = Problems()
    for name, reading in readings.items():
        for text, expected in reading.problems:
            problems.add(table.path, *_locate(table, name, text), expected)
    problems.raise_if_any()
    measured = table.columns[response]
    codes = [code for code, text in enumerate(measured.texts) if text in readings[response].failed]
    failed = np.isin(measured.codes, codes)
    _say(readings, response, measured, int(failed.sum()))
    data = {name: _spread(table.columns[name], reading) for name, reading in readings.items()}
    return pd.DataFrame(data), failed


def _read_all(
    table: TextTable,
    response: str,
    factors: Sequence[str],
    spelling: Spelling,
    failed_values: Sequence[str],
    *,
    doubt_points: bool,
) -> dict[str, Reading]:
    readings = {
        name: read_factor(
            table.columns[name].texts,
            name,
            values=spelling.values.get(name, {}),
            decimal=spelling.decimal,
            doubt_points=doubt_points,
            is_category=name in spelling.categories,
        )
        for name in factors
    }
    texts = table.columns[response].texts
    readings[response] = read_measured(texts, failed_values, decimal=spelling.decimal, doubt_points=doubt_points)
    return readings


def _locate(table: TextTable, name: str, text: str) -> tuple[int, str, str]:
    line, cell = table.rows_with(name, text)
    return line, name, cell


def _spread(column: Column, reading: Reading) -> NDArray[Any]:
    """Return the value of each row; a failed one is NaN."""
    values = [reading.values.get(text, np.nan) for text in column.texts]
    return np.array(values)[np.asarray(column.codes)] if values else np.zeros(0)


def _say(readings: Mapping[str, Reading], response: str, measured: Column, failed: int) -> None:
    """Say how columns were read, those that were read alike in one line."""
    alike: dict[str, list[str]] = {}
    for name, reading in readings.items():
        alike.setdefault(reading.note, []).append(name)
    for note, names in alike.items():
        print(f"{', '.join(names)}: {note}", file=sys.stderr)
    if failed:
        counts = [f"{text or 'nothing'} {measured.count(text)}" for text in readings[response].failed]
        rows, are = ("row", "is") if failed == 1 else ("rows", "are")
        print(f"{failed} {rows} failed ({response}: {', '.join(counts)}) and {are} left out", file=sys.stderr)
