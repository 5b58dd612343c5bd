"""What the tables say of themselves: the page docs/reference/tables.md, and the statements that create them.

`python -m knobscope.tables.reference docs/reference/tables.md` writes the page.
"""

import sys
from collections.abc import Iterator, Mapping
from inspect import cleandoc
from pathlib import Path

from knobscope.tables.columns import COLUMNS, ROWS
from knobscope.tables.declaring import CaseColumns, Column, RunColumns, columns_of
from knobscope.tables.trace import TRACE_ROWS

_HEAD = """\
# Tables

Written by `make docs` from `src/knobscope/tables`. All these tables are in `results/STUDY/study.duckdb`, with the same
words as comments (`SELECT * FROM duckdb_columns()`); those about runs are parquet files in
`results/STUDY/DBMS/DEVICE/WORKLOAD/runs`, too. Times of the day are UTC. A figure that is not available is NULL.

`run_id` is the run, as in `runs`. `dbms`, `device` and `workload` are names of specs; together they are a case.
"""
#: The columns that the head describes; a table of the page names those that it has.
_KEYS = columns_of(RunColumns) | columns_of(CaseColumns)
_TRACES = """
# Tables of a trace

In `results/STUDY/traces/RUN_ID` of a study with `trace: true`, as parquet files, and in no database.
"""


def define_tables() -> Iterator[str]:
    """Yield the statements that make all tables of a study's database."""
    for table, columns in COLUMNS.items():
        definition = ", ".join(f'"{column.name}" {column.type}' for column in columns.values())
        yield f"CREATE TABLE {table} ({definition})"


def comment_tables() -> Iterator[str]:
    """Yield the statements that write down the meaning of all tables and columns as comments."""
    for table, columns in COLUMNS.items():
        yield f"COMMENT ON TABLE {table} IS {_quote(_meaning(ROWS[table]))}"
        for column in columns.values():
            yield f'COMMENT ON COLUMN {table}."{column.name}" IS {_quote(column.meaning)}'


def render_tables() -> str:
    """Return the page."""
    parts = [_HEAD, ", ".join(f"[`{table}`](#{table})" for table in ROWS) + "."]
    for table, row in ROWS.items():
        parts += _section(table, row, COLUMNS[table])
    parts.append(_TRACES)
    for table, row in TRACE_ROWS.items():
        parts += _section(table, row, columns_of(row))
    return "\n".join(parts) + "\n"


def _section(table: str, row: type, columns: Mapping[str, Column]) -> Iterator[str]:
    yield f"\n## {table}\n\n{_meaning(row)}\n"
    keys = [name for name, column in columns.items() if column == _KEYS.get(name)]
    if keys:
        yield f"Keys: {', '.join(f'`{name}`' for name in keys)}.\n"
    yield "| column | type | meaning |\n|---|---|---|"
    for column in columns.values():
        if column.name not in keys:
            unit = f", {column.unit}" if column.unit else ""
            yield f"| `{column.name}` | {column.type}{unit} | {_cell(column.meaning)} |"


def _meaning(row: type) -> str:
    return cleandoc(row.__doc__ or "")


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _quote(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render_tables(), encoding="utf-8")
