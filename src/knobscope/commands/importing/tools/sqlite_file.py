"""A SQLite file of somebody else, opened so that nothing but its bytes is read, and nothing is written."""

import sqlite3
from collections.abc import Collection
from contextlib import closing
from pathlib import Path
from urllib.parse import quote

from knobscope.errors import UserError

_MOST_BYTES = 1 << 30


def read_only_uri(path: Path, expected: str, tables: Collection[str]) -> str:
    """Return the URI under which SQLite reads a file and writes neither to it nor next to it.

    UserError: it is no such file, has changes in a write-ahead log, or holds anything but tables and indexes: a query
    of a view or of a virtual table runs what its author wrote.
    """
    if not path.is_file():
        raise UserError(f"{path} does not exist; expected {expected}")
    if path.stat().st_size > _MOST_BYTES:
        raise UserError(f"{path}: found more than {_MOST_BYTES >> 20} MiB; expected {expected}")
    for ending in ("-wal", "-journal"):
        log = path.with_name(path.name + ending)
        if log.is_file() and log.stat().st_size:
            raise UserError(f"{log}: found changes that are not in {path.name}; end the program that writes it first")
    uri = f"file:{quote(str(path.absolute()))}?mode=ro&immutable=1"
    try:
        with closing(sqlite3.connect(uri, uri=True)) as connection:
            contents = connection.execute("SELECT type, name, sql FROM sqlite_master").fetchall()
    except sqlite3.DatabaseError as error:
        raise UserError(f"{path}: found {error}; expected {expected}") from error
    for kind, name, sql in contents:
        if kind not in ("table", "index") or str(sql).lower().startswith("create virtual"):
            raise UserError(f"{path}: found the {kind} {name!r}; expected {expected}, which has none")
    if missing := sorted(set(tables) - {name for _, name, _ in contents}):
        raise UserError(f"{path}: found no table {missing[0]!r}; expected {expected}")
    return uri
