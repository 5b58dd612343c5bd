"""Reads a trace from CSV: a line of column names, then a line per request, in order of issue."""

import csv
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.errors import UserError
from knobscope.trace.columns import Counts, open_text, quote

if TYPE_CHECKING:
    import duckdb

__all__ = ["read_csv"]

_NEEDED = ("ts_ns", "lba", "len_sectors", "op")
_NUMBERS = (*_NEEDED[:3], "flush", "fua", "lat_ns", "offset")
_MAY_BE_EMPTY = ("flush", "fua", "lat_ns", "offset")
_LETTERS = ("R", "W", "D", "F")  # in the order of OPERATIONS; the whole word may be there too
#: What a column becomes; a flush is a request without sectors that says so, anything else without sectors is none.
_EXPRESSIONS = {
    "ts_ns": "ts_ns",
    "lba": "lba",
    "len_sectors": "len_sectors * 512 AS bytes",
    "file": "file",
    "lat_ns": "lat_ns",
    "offset": '"offset"',
    "fua": "fua <> 0 AS fua",
    "flush": "flush <> 0 AND len_sectors > 0 AS preflush",
}


def read_csv(connection: "duckdb.DuckDBPyConnection", path: Path) -> Counts:
    """Make table `raw` of a CSV file; raises UserError with the first line that makes no sense."""
    names = _read_names(path)
    columns = ", ".join(f"{quote(name)}: '{'BIGINT' if name in _NUMBERS else 'VARCHAR'}'" for name in names)
    is_flush = "coalesce(flush, 0) <> 0" if "flush" in names else "false"
    letters = " ".join(f"WHEN '{letter}' THEN {place}" for place, letter in enumerate(_LETTERS))
    op = f"CASE WHEN len_sectors = 0 AND {is_flush} THEN 3 ELSE CASE upper(left(op, 1)) {letters} END END"
    selected = [_EXPRESSIONS[name] for name in names if name in _EXPRESSIONS]
    connection.execute(
        f"CREATE TABLE raw AS SELECT ({op})::UTINYINT AS op, {', '.join(selected)} "  # noqa: S608
        f"FROM read_csv({quote(str(path))}, header = true, delim = ',', quote = '\"', escape = '\"', "
        f"auto_detect = false, store_rejects = true, columns = {{{columns}}})"
    )
    counts = Counts()
    if _count(connection, "reject_errors"):
        _find_problem(path, may_be_cut=True)
        counts.truncated_lines = 1
    wrong = "op IS NULL OR ts_ns IS NULL OR lba IS NULL OR bytes IS NULL OR lba < 0 OR bytes < 0"
    if _count(connection, f"raw WHERE {wrong}" + (" OR lat_ns < 0" if "lat_ns" in names else "")):
        _find_problem(path)
    none = "bytes = 0 AND op <> 3"
    counts.others = _count(connection, f"raw WHERE {none}")
    connection.execute(f"DELETE FROM raw WHERE {none}")  # noqa: S608
    return counts


def _count(connection: "duckdb.DuckDBPyConnection", source: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])  # noqa: S608


def _read_names(path: Path) -> list[str]:
    with open_text(path) as text:
        names = [name.strip() for name in next(csv.reader(text), [])]
    missing = [name for name in _NEEDED if name not in names]
    if missing or len(set(names)) < len(names):
        what = f"no column {', '.join(missing)}" if missing else "a column twice"
        raise UserError(f"{path}, line 1: {what}; expected a line of names with {', '.join(_NEEDED)}, each once")
    return names


def _find_problem(path: Path, *, may_be_cut: bool = False) -> None:
    """Raise UserError for the first line that makes no sense, unless it is the last one and was cut off."""
    with open_text(path) as text:
        reader = csv.reader(text)
        names = [name.strip() for name in next(reader)]
        for row, is_last in _mark_last(reader):
            problem = _check(names, row)
            if problem and not (may_be_cut and is_last):
                raise UserError(f"{path}, line {reader.line_num - (not is_last)}: {problem}")


def _mark_last(rows: Iterator[list[str]]) -> Iterator[tuple[list[str], bool]]:
    before: list[str] | None = None
    for row in rows:
        if before is not None:
            yield before, False
        before = row
    if before is not None:
        yield before, True


def _check(names: Sequence[str], row: Sequence[str]) -> str | None:
    """Return what is wrong with a line."""
    if len(row) != len(names):
        return f"{len(row)} values; expected {len(names)}, one per column"
    for name, value in zip(names, row, strict=True):
        if name in _NUMBERS and not (value.strip().lstrip("-").isdecimal() or (not value and name in _MAY_BE_EMPTY)):
            return f"{name} is {value!r}; expected a whole number"
        if name in _NUMBERS[1:] and value.strip().startswith("-"):
            return f"{name} is {value}; expected 0 or more"
        if name == "op" and value[:1].upper() not in _LETTERS:
            return f"op is {value!r}; expected one of {', '.join(_LETTERS)}"
    return None
