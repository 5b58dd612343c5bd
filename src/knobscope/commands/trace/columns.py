"""The columns that all formats of traces are brought to, and small helpers to write SQL and to look into files."""

import io
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from knobscope.commands.trace.unpacking import open_packed

if TYPE_CHECKING:
    import duckdb

Row = TypeVar("Row")
#: Where intervals begin, and where the last one ends, in ns.
Edges = NDArray[np.int64]

#: The index of an operation here is its number in column `op`.
OPERATIONS = ("read", "write", "discard", "flush")

#: Column of the view `requests` -> DuckDB type. `lba` in sectors of 512 bytes; times and `bytes` as their names say.
COLUMNS: dict[str, str] = {
    "ts_ns": "BIGINT",  # of issue
    "lba": "BIGINT",
    "bytes": "BIGINT",
    "op": "UTINYINT",
    "file": "VARCHAR",
    "offset": "BIGINT",  # in the file, bytes
    "lat_ns": "BIGINT",  # from issue to completion; NULL: not completed, or not told
    "wait_ns": "BIGINT",  # before issue
    "queue": "INTEGER",
    "owner": "VARCHAR",
    "fua": "BOOLEAN",
    "preflush": "BOOLEAN",
    "sync": "BOOLEAN",
    "meta": "BOOLEAN",
    "failed": "BOOLEAN",
    "device": "VARCHAR",
    "inode": "UBIGINT",
}


#: Largest numbers that are taken for real: sums of times, and addresses in bytes, have to fit into 64 bits.
MAX_TIME_NS = 1 << 61
MAX_SECTOR = (1 << 53) - 1
MAX_SECTORS = 1 << 31  # of one request: 1 TiB


ISSUE_TO_COMPLETION = "from issue to completion"


@dataclass
class Counts:
    """What a trace says in addition to its requests, and what was odd about it."""

    truncated_lines: int = 0  # the last one, when it ends too early
    out_of_order: int = 0  # requests that the file has after a later one
    completions_without_start: int = 0
    requeues: int = 0
    others: int = 0  # neither read, write, discard nor flush: without a size, or a command of the driver's own
    lost_events: int | None = None
    life: str = ISSUE_TO_COMPLETION  # what latency and depth are of
    duration_ns: int | None = None  # of what was traced, where the trace says so


def quote(text: str) -> str:
    """Return a text as a literal of SQL."""
    return "'" + text.replace("'", "''") + "'"


def open_text(path: Path) -> IO[str]:
    """Open a text file, compressed or not; a byte order mark is no part of the text."""
    return io.TextIOWrapper(open_packed(path), encoding="utf-8-sig", errors="replace", newline="")


def fetch_rows(connection: "duckdb.DuckDBPyConnection", kind: type[Row], query: str) -> list[Row]:
    """Return the rows of a query, whose columns `kind` declares; `op` becomes the name of the operation."""
    cursor = connection.execute(query)
    names = [column[0] for column in cursor.description or ()]
    rows = [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
    named = [row | {"op": OPERATIONS[row["op"]]} for row in rows] if "op" in names else rows
    return cast("list[Row]", named)


def fetch_columns(connection: "duckdb.DuckDBPyConnection", query: str) -> list[NDArray[Any]]:
    """Return the columns of a query as arrays, in the order of the rows; no column may hold NULL."""
    return [np.asarray(column) for column in connection.execute(query).fetchnumpy().values()]
