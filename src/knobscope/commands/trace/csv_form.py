"""Reads a trace from CSV: a line of column names, then a line per request, in order of issue."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.commands.trace.columns import MAX_SECTOR, MAX_SECTORS, MAX_TIME_NS, Counts, open_text, quote
from knobscope.errors import UserError

if TYPE_CHECKING:
    import duckdb

_NEEDED = ("ts_ns", "lba", "len_sectors", "op")
#: Column of whole numbers -> the largest that is taken for real. Only times may be negative.
_LARGEST = {
    "ts_ns": MAX_TIME_NS,
    "lba": MAX_SECTOR,
    "len_sectors": MAX_SECTORS,
    "flush": 1,
    "fua": 1,
    "lat_ns": MAX_TIME_NS,
    "offset": MAX_SECTOR * 512,
}
_MAY_BE_EMPTY = ("flush", "fua", "lat_ns", "offset")
_MOST_DIGITS = 30  # of a number: Python takes long to read thousands
_WHOLE_NUMBER = re.compile(r"-?[0-9]+")
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
    try:
        return _read(connection, path)
    except csv.Error as error:
        raise UserError(f"{path}: {error}; expected a line of values per request") from error


def _read(connection: "duckdb.DuckDBPyConnection", path: Path) -> Counts:
    import duckdb

    names = _read_names(path)
    numbers = [name for name in names if name in _LARGEST]
    is_flush = "coalesce(flush, 0) <> 0" if "flush" in names else "false"
    letters = " ".join(f"WHEN '{letter}' THEN {index}" for index, letter in enumerate(_LETTERS))
    op = f"CASE WHEN len_sectors = 0 AND {is_flush} THEN 3 ELSE CASE upper(left(trim(op), 1)) {letters} END END"
    selected = [_EXPRESSIONS[name] for name in names if name in _EXPRESSIONS]
    columns = ", ".join(f"{quote(name)}: 'VARCHAR'" for name in names)
    options = (
        f"header = true, delim = ',', quote = '\"', escape = '\"', auto_detect = false, store_rejects = true, "
        f"columns = {{{columns}}}"
    )
    cast = ", ".join(f'try_cast("{name}" AS BIGINT) AS "{name}"' for name in numbers)
    doubt = " OR ".join(_doubt(name) for name in numbers)
    table = (
        f"CREATE TABLE raw AS SELECT ({op})::UTINYINT AS op, {', '.join(selected)}, is_doubtful "  # noqa: S608
        f"FROM (SELECT * REPLACE ({cast}), {doubt} AS is_doubtful FROM read_csv({quote(str(path))}, {options}, "
    )
    try:
        connection.execute(f"{table} strict_mode = true))")
    except duckdb.InvalidInputException:  # lines that end in two ways; the other mode leaves out values too many
        _find_problem(path, may_be_cut=True)
        connection.execute(f"{table} strict_mode = false))")
    counts = Counts()
    if rejected := connection.execute("SELECT line, error_message FROM reject_errors ORDER BY line").fetchall():
        if not _find_problem(path, may_be_cut=True) or len({line for line, _ in rejected}) > 1:
            raise UserError(f"{path}, line {rejected[0][0]}: {rejected[0][1].splitlines()[0]}")
        counts.truncated_lines = 1
    if _count(connection, "raw WHERE op IS NULL OR is_doubtful"):
        _find_problem(path)
    if _count(connection, "raw WHERE op IS NULL"):
        raise UserError(f"{path}: column op: found an operation of another name; expected {', '.join(_LETTERS)}")
    none = "bytes = 0 AND op <> 3"
    counts.others = _count(connection, f"raw WHERE {none}")
    connection.execute(f"DELETE FROM raw WHERE {none}")  # noqa: S608
    connection.execute("ALTER TABLE raw DROP COLUMN is_doubtful")
    return counts


def _doubt(name: str) -> str:
    """Return when a number has to be looked at more closely: one like 1.5 can be cast, and is none."""
    text, number = f'trim("{name}")', f'try_cast("{name}" AS BIGINT)'
    least = -_LARGEST[name] if name == "ts_ns" else 0
    doubt = f"coalesce({number}::VARCHAR <> {text} OR {number} NOT BETWEEN {least} AND {_LARGEST[name]}, true)"
    return f"""({doubt} AND coalesce("{name}", '') <> '')""" if name in _MAY_BE_EMPTY else doubt


def _count(connection: "duckdb.DuckDBPyConnection", source: str) -> int:
    return int(connection.execute(f"SELECT count(*) FROM {source}").fetchall()[0][0])  # noqa: S608


def _read_names(path: Path) -> list[str]:
    with open_text(path) as text:
        names = [name.strip() for name in next(csv.reader(text), [])]
    missing = [name for name in _NEEDED if name not in names]
    if missing or len(set(names)) < len(names):
        problem = f"no column {', '.join(missing)}" if missing else "a column twice"
        expected = f"a line of names with {', '.join(_NEEDED)}, each once, separated by commas"
        raise UserError(f"{path}, line 1: {problem}; expected {expected}")
    return names


def _find_problem(path: Path, *, may_be_cut: bool = False) -> bool:
    """Raise UserError for the first line that makes no sense; return whether that is the last, which may be cut off."""
    with open_text(path) as text:
        reader = csv.reader(text)
        names = [name.strip() for name in next(reader)]
        for row, is_last in _mark_last(reader):
            problem = _check(names, row)
            swallowed = sum(value.rstrip("\n").count("\n") for value in row) if is_last else 0
            if problem and swallowed:
                raise UserError(f"{path}, line {reader.line_num - swallowed}: a quote that is never closed")
            if problem and may_be_cut and is_last:
                return True
            if problem:
                raise UserError(f"{path}, line {reader.line_num - (not is_last)}: {problem}")
    return False


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
    problems = (_check_value(name, value.strip()) for name, value in zip(names, row, strict=True))
    return next((problem for problem in problems if problem), None)


def _check_value(name: str, value: str) -> str | None:
    if name == "op" and value[:1].upper() not in _LETTERS:
        return f"op is {value[:100]!r}; expected one of {', '.join(_LETTERS)}"
    if name not in _LARGEST or (not value and name in _MAY_BE_EMPTY):
        return None
    if not _WHOLE_NUMBER.fullmatch(value):
        return f"{name} is {value[:100]!r}; expected a whole number"
    if value.startswith("-") and value.strip("-0") and name != "ts_ns":
        return f"{name} is {value[:_MOST_DIGITS]}; expected 0 or more"
    if len(value) > _MOST_DIGITS or abs(int(value)) > _LARGEST[name]:
        return f"{name} is {value[:_MOST_DIGITS]}; expected at most {_LARGEST[name]}"
    return None
