"""Connections of DuckDB that read what others wrote: no files but those named, no extensions, bounded memory and time.

What a stranger's database, parquet file or rule makes DuckDB do stays inside the process, and ends.
"""

import os
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.errors import UserError
from knobscope.processes.own_memory import limit_memory

if TYPE_CHECKING:
    import duckdb

MEMORY = "1GiB"
SECONDS = 300
#: Memory beyond what the process has: half is for what DuckDB counts, half for results of functions, which it does not.
_BYTES = 1 << 31
#: Rows that become objects of Python at once; a study of 66,540 runs has 24,360 findings, its longest table read whole.
MOST_ROWS = 1_000_000

#: Settings of a connection to a database file; in this order, since the last two forbid changes.
LOCKED = {
    "autoload_known_extensions": "false",
    "autoinstall_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",  # a table that is not there is no variable of ours
    "memory_limit": MEMORY,
    "temp_directory": "",  # else a directory next to the database, which a link may lead elsewhere
    "max_execution_time": str(SECONDS * 1000),
    "enable_external_access": "false",
    "lock_configuration": "true",
}


def lock(connection: "duckdb.DuckDBPyConnection", readable: Sequence[Path] = (), **settings: str) -> None:
    """Take from a connection what a stranger's query has no business with, unless that is done; `readable` stays.

    `settings` of DuckDB replace those of LOCKED. Paths are literal: a `*` in one stands for itself.
    """
    if connection.execute("SELECT current_setting('lock_configuration')").fetchall()[0][0]:
        return
    if readable:
        connection.execute("SET allowed_paths = ?", [[str(path) for path in readable]])
    connection.execute(";".join(f"SET {name} = '{value}'" for name, value in (LOCKED | settings).items()))


@contextmanager
def open_files(paths: Sequence[Path]) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Yield a connection to memory that can read these files and no others."""
    import duckdb

    with duckdb.connect() as connection:
        lock(connection, paths)
        yield connection


@contextmanager
def bounded(source: str, seconds: float = SECONDS + 10) -> Iterator[None]:
    """Bound memory and time of a stranger's query also within one call of a function, where DuckDB does not look.

    Such a call cannot be interrupted: one that takes longer ends this process, with a sentence and exit code 2.
    """

    def end() -> None:
        found = f"found a query on which DuckDB works for more than {seconds:g} s and cannot be interrupted"
        print(f"knobscope: {source}: {found}; expected one that ends", file=sys.stderr, flush=True)
        os._exit(2)

    watchdog = threading.Timer(seconds, end)
    watchdog.daemon = True
    watchdog.start()
    try:
        with limit_memory(_BYTES):
            yield
    finally:
        watchdog.cancel()


def fetch_rows(result: "duckdb.DuckDBPyConnection") -> list[dict[str, Any]]:
    """Return all rows of a result, each column -> value. UserError: there are more than any study has."""
    rows = result.fetchmany(MOST_ROWS + 1)
    if len(rows) > MOST_ROWS:
        raise UserError(f"found more than {MOST_ROWS:,} rows of a table; expected at most that many")
    names = [column[0] for column in result.description or ()]
    return [dict(zip(names, row, strict=True)) for row in rows]


def describe_refusal(error: "duckdb.Error") -> str:
    """Say in one line what DuckDB refused, and which of the limits was reached."""
    import duckdb

    if isinstance(error, duckdb.InterruptException):
        return f"a query took more than {SECONDS} s, the limit for a query"
    if isinstance(error, duckdb.OutOfMemoryException):
        return f"a query needs more memory than it may have; the limit is {MEMORY}, or what the system gives"
    return next(iter(str(error).strip().splitlines()), type(error).__name__)
