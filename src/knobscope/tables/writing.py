"""Reads and writes tables and JSON files, always whole: beside the target, then renamed.

Tables are parquet files, written by DuckDB (no second parquet library).
"""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from knobscope.tables.columns import TABLES

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["read_table", "write_json", "write_table"]

#: Rows of one statement: seven times as fast as row by row.
_ROWS_AT_ONCE = 200


def write_table(path: Path, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as parquet with exactly the columns of the table; a missing key is NULL, an unknown one a KeyError."""
    import duckdb

    columns = TABLES[table]
    values = []
    for row in rows:
        if unknown := set(row) - set(columns):
            raise KeyError(f"table {table} has no columns {sorted(unknown)}")
        values.append([row.get(column) for column in columns])
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with duckdb.connect() as connection:
        definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        connection.execute(f"CREATE TABLE t ({definition})")
        marks = f"({', '.join('?' * len(columns))})"
        connection.execute("BEGIN")
        for start in range(0, len(values), _ROWS_AT_ONCE):
            part_of_them = values[start : start + _ROWS_AT_ONCE]
            places = ", ".join([marks] * len(part_of_them))
            connection.execute(f"INSERT INTO t VALUES {places}", list(chain(*part_of_them)))  # noqa: S608
        connection.execute("COMMIT")
        connection.execute("COPY t TO ? (FORMAT parquet)", [str(part)])
    part.replace(path)


def read_table(paths: Sequence[Path]) -> "pd.DataFrame":
    """Return the rows of parquet files of one table as one data frame, in the order of the paths."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.execute(
            "SELECT * FROM read_parquet(?, union_by_name = true)", [[str(path) for path in paths]]
        ).df()


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    part.replace(path)
