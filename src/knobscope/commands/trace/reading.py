"""Opens a trace, whatever its format: its requests in order of issue as a view of DuckDB, and what was odd about it."""

import contextlib
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from knobscope.commands.trace.blkparse import read_blkparse
from knobscope.commands.trace.columns import COLUMNS, Counts, quote
from knobscope.commands.trace.csv_form import read_csv
from knobscope.commands.trace.limits import (
    MOST_FILES,
    MOST_QUEUES,
    MOST_REQUESTS,
    check_text,
    read_first_lines,
    require_few,
    require_regular,
)
from knobscope.commands.trace.other_tools import (
    convert_biosnoop,
    convert_events,
    find_biosnoop,
    is_events,
    refuse_unreadable,
)
from knobscope.commands.trace.recorded import read_recorded
from knobscope.commands.trace.unpacking import is_packed, is_stream, read_chunks, save_stream
from knobscope.errors import UserError
from knobscope.processes import open_temporary
from knobscope.tables import TRACE_TABLES, describe_refusal, lock

if TYPE_CHECKING:
    import duckdb

Format = Literal["blkparse", "csv", "parquet", "ftrace", "biosnoop"]
FORMATS = ("blkparse", "csv", "parquet", "ftrace", "biosnoop")
_FIRST_LINES = 40  # that a format is recognised by: ftrace starts with a picture of its columns
_MEMORY = "1GB"  # beyond that DuckDB uses files


@dataclass(frozen=True)
class Trace:
    """View `requests` has the columns of COLUMNS, NULL where the trace does not tell, in order of `ts_ns`."""

    connection: "duckdb.DuckDBPyConnection"
    path: Path
    format: Format
    counts: Counts


@contextlib.contextmanager
def open_trace(
    path: Path, format_: Format | None = None, device: str | None = None, file: str | None = None
) -> Iterator[Trace]:
    """Read a trace; UserError with file, line and what was expected where it makes no sense.

    `device` (MAJ:MIN) chooses one of several in blkparse text; `file`: only requests of files that match this glob.
    """
    import duckdb

    with open_temporary("knobscope-spill-") as spill, duckdb.connect() as connection:
        source = save_stream(path, spill) if is_stream(path) else path
        if not source.exists():
            raise UserError(f"{path}: there is no such file; expected a trace")
        require_regular(source)
        connection.execute("SET enable_progress_bar = false")
        try:
            chosen = format_ or _recognise(source)
            if device is not None and chosen in ("csv", "parquet"):
                raise UserError("--device: only blkparse, ftrace and biosnoop know devices")
            text, lost = _make_readable(source, chosen, spill, device)
            files = [text, *(folder / f"{table}.parquet" for table in TRACE_TABLES for folder in (path, path.parent))]
            lock(connection, files, memory_limit=_MEMORY, temp_directory=str(spill), max_execution_time="0")
            counts = _read(connection, text, chosen, device)
            counts.lost_events = lost if counts.lost_events is None else counts.lost_events
            require_few(path, "requests", _count(connection, "count(*)", "raw"), MOST_REQUESTS)
            _order(connection, counts)
            if chosen == "biosnoop":
                counts.out_of_order = 0  # its lines are in the order in which requests ended
            _show(connection, file)
            require_few(path, "queues", _count(connection, "count(DISTINCT queue)", "requests"), MOST_QUEUES)
            require_few(path, "files", _count(connection, "count(DISTINCT file)", "requests"), MOST_FILES)
            if not _count(connection, "count(*)", "requests"):
                raise UserError(f"{path}: {_explain_nothing(connection, chosen, file)}")
            yield Trace(connection, path, chosen, counts)
        except duckdb.Error as problem:
            expected = f"a trace in one of the formats {', '.join(FORMATS)}"
            raise UserError(
                f"{path}: not readable as {chosen}: {describe_refusal(problem)}; expected {expected}"
            ) from problem
        except UserError as problem:  # about a file that nobody named
            raise UserError(re.sub(rf"{re.escape(str(spill))}/\w+", str(path), str(problem))) from problem


def _make_readable(path: Path, chosen: Format, folder: Path, device: str | None) -> tuple[Path, int | None]:
    """Return the trace as DuckDB can read it: another file in `folder` if it cannot read this one; and events lost."""
    if chosen == "parquet":
        return path, None
    # Of a request these have one line, which blkparse and ftrace have not.
    check_text(path, {"csv": MOST_REQUESTS + 1, "biosnoop": MOST_REQUESTS + _FIRST_LINES}.get(chosen))
    out = folder / "text"
    if chosen == "ftrace":
        return out, convert_events(path, out)
    if chosen == "biosnoop":
        convert_biosnoop(path, out, device)
    elif is_packed(path) in ("xz", "zstd") or (is_packed(path) and path.suffix != ".gz"):
        with out.open("wb") as file:
            file.writelines(read_chunks(path))
    else:
        return path, None
    return out, None


def _read(connection: "duckdb.DuckDBPyConnection", path: Path, chosen: Format, device: str | None) -> Counts:
    """Make `raw` of a trace."""
    if chosen == "parquet":
        return read_recorded(connection, path)
    if chosen in ("blkparse", "ftrace"):
        return read_blkparse(connection, path, device)
    return read_csv(connection, path)


def _recognise(path: Path) -> Format:
    if path.is_dir():
        return "parquet"
    with path.open("rb") as file:
        if file.read(4) == b"PAR1":
            return "parquet"
    lines = read_first_lines(path, _FIRST_LINES)
    refuse_unreadable(path, lines[:1])
    if is_events(lines):
        return "ftrace"
    if find_biosnoop(lines) is not None:
        return "biosnoop"
    first = lines[0] if lines else ""
    is_csv = "ts_ns" in first or ("," in first and not re.match(r"\s*\d+,\d+\s+\d+\s", first))
    return "csv" if is_csv else "blkparse"


def _count(connection: "duckdb.DuckDBPyConnection", aggregate: str, source: str) -> int:
    return int(connection.execute(f"SELECT {aggregate} FROM {source}").fetchall()[0][0])  # noqa: S608 - names of ours


def _explain_nothing(connection: "duckdb.DuckDBPyConnection", chosen: Format, file: str | None) -> str:
    """Say of a trace without requests, or without those of the files that were asked for, what was expected."""
    if file and _count(connection, "count(*)", "ordered"):
        every = "(SELECT NULL::VARCHAR AS file UNION ALL BY NAME FROM ordered)"
        query = f"SELECT DISTINCT file FROM {every} WHERE file <> '' ORDER BY file LIMIT 3"  # noqa: S608
        names = ", ".join(repr(name) for (name,) in connection.execute(query).fetchall())
        expected = f"a pattern of names such as {names}" if names else "no --file: the trace names none"
        return f"found no request of a file like {file!r}; expected {expected}"
    has_names = chosen in ("csv", "biosnoop")
    return f"found no request; expected {'a line for each below the line of names' if has_names else 'one or more'}"


def _order(connection: "duckdb.DuckDBPyConnection", counts: Counts) -> None:
    """Make `ordered` of `raw`: the same, unless some are out of order."""
    later = "SELECT count(*) FROM (SELECT ts_ns < lag(ts_ns) OVER () AS is_earlier FROM raw) WHERE is_earlier"
    counts.out_of_order = connection.execute(later).fetchall()[0][0]
    if counts.out_of_order:
        numbered = "SELECT *, row_number() OVER () AS number FROM raw"
        connection.execute(
            f"CREATE TABLE ordered AS SELECT * EXCLUDE number FROM ({numbered}) ORDER BY ts_ns, number"  # noqa: S608
        )
        connection.execute("DROP TABLE IF EXISTS raw")
    else:
        connection.execute("CREATE VIEW ordered AS SELECT * FROM raw")


def _show(connection: "duckdb.DuckDBPyConnection", file: str | None) -> None:
    """Make the view `requests` of `ordered`, with all columns."""
    has = {row[0] for row in connection.execute("DESCRIBE ordered").fetchall()}
    columns = (f'"{name}"' if name in has else f'NULL::{kind} AS "{name}"' for name, kind in COLUMNS.items())
    where = f"WHERE file GLOB {quote(file)}" if file else ""
    connection.execute(f"CREATE VIEW requests AS SELECT {', '.join(columns)} FROM ordered {where}")  # noqa: S608
