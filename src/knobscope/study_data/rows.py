"""Rows of a table with the query that gave them, so that a figure can say where its numbers come from."""

import textwrap
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

#: What a query of the report returned, by column: only the query says which.
Row = Mapping[str, Any]


class Rows(list[Row]):
    """Rows, each column -> value; `query` is SQL that gives them again from the study's database."""

    def __init__(self, rows: Iterable[Row] = (), query: str = "") -> None:
        super().__init__(rows)
        self.query = query


def write_query(query: str, parameters: Sequence[object]) -> str:
    """Return a query with its parameters written in, as one statement that DuckDB executes."""
    first, *pieces = query.strip("\n").split("?")
    parts = [first]
    for parameter, part in zip(parameters, pieces, strict=True):
        parts += [_literal(parameter), part]
    return textwrap.dedent("".join(parts)).strip() + ";"


def _literal(value: object) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_literal, value))}]"
    if isinstance(value, bool | int | float):
        return str(value)
    return "'" + str(value).replace("'", "''") + "'"
