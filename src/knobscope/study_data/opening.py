"""Opens a study's database, whoever wrote it: read only, and nothing that is stored in it as SQL is executed.

Tables are data and are read. Views and macros of ours are made anew from our own text, for this connection alone;
others are refused, since a view of the name of a table or a macro of the name of a function would answer instead of it.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.errors import UserError
from knobscope.tables import LOCKED, TABLES, describe_refusal
from knobscope.tables.macros import MACROS, TABLE_MACROS
from knobscope.tables.views import VIEWS

if TYPE_CHECKING:
    import duckdb

_EXPECTED = "expected a DuckDB file that `knobscope detect` wrote"
#: Rows of one table, and bytes of text in all tables: a study of 66,540 runs has 129 MB on disk.
MOST_ROWS, _MOST_TEXT = 50_000_000, 1 << 29
#: Types of columns; views may hold structures of them, too.
_PLAIN = (
    r"VARCHAR|DOUBLE|FLOAT|BOOLEAN|TIMESTAMP|DATE|U?BIGINT|U?INTEGER|U?SMALLINT|U?TINYINT|HUGEINT|DECIMAL\(\d+,\d+\)"
)
_STRUCTURED = re.compile(rf"(STRUCT\((\"?\w+\"? ({_PLAIN})(, )?)+\)|{_PLAIN})(\[\])*")
#: What else a catalog can hold -> a query for it. It asks DuckDB's own functions by their whole names, since a macro
#: may have the short ones.
_FOREIGN = {
    "view": "SELECT view_name FROM system.main.duckdb_views() WHERE NOT internal AND view_name NOT IN $views",
    "macro": "SELECT function_name FROM system.main.duckdb_functions() "
    "WHERE NOT internal AND function_name NOT IN $macros",
    "type": "SELECT type_name FROM system.main.duckdb_types() WHERE NOT internal",
    "schema": "SELECT schema_name FROM system.main.duckdb_schemas() WHERE NOT internal",
    "sequence": "SELECT sequence_name FROM system.main.duckdb_sequences()",
    "trigger": "SELECT trigger_name FROM system.main.duckdb_triggers()",
    "index": "SELECT index_name FROM system.main.duckdb_indexes()",
    "constraint of table": "SELECT table_name FROM system.main.duckdb_constraints()",
    "generated or default value of column": "SELECT table_name || '.' || column_name "
    "FROM system.main.duckdb_columns() WHERE NOT internal AND column_default IS NOT NULL",
}


@contextmanager
def open_study(database: Path, *, threads: int | None = None) -> Iterator["duckdb.DuckDBPyConnection"]:
    """Yield a connection to a study's database that reads no other file, loads nothing and has bounded memory and time.

    Tables and columns that it lacks, as an earlier version wrote it, count as empty. UserError: the file is missing, or
    no study's database; or a query on it fails, while the connection is open.
    """
    import duckdb

    if not database.is_file():
        problem = "is no file" if database.exists() else "does not exist"
        raise UserError(f"{database} {problem}; a study writes it when its runs are done, as does `knobscope detect`")
    settings = LOCKED if threads is None else {**LOCKED, "threads": str(threads)}
    try:
        with duckdb.connect(str(database), read_only=True, config=dict(settings)) as connection:
            _refuse_foreign(connection, database)
            columns = _read_columns(connection)
            _check_tables(connection, database, columns)
            _complete_tables(connection, columns)
            _define_own(connection)
            yield connection
    except duckdb.Error as error:
        raise UserError(f"{database}: {describe_refusal(error)}; {_EXPECTED}") from error


def _refuse_foreign(connection: "duckdb.DuckDBPyConnection", database: Path) -> None:
    """Raise UserError for what the catalog holds and none of ours does."""
    names = {"views": tuple(VIEWS), "macros": tuple(_own_macros())}
    for kind, question in _FOREIGN.items():
        parameters = {name: value for name, value in names.items() if f"${name}" in question}
        rows = connection.execute(f"{question} ORDER BY ALL LIMIT 1", parameters).fetchall()
        if rows:
            raise UserError(
                f"{database}: found the {kind} {_show(rows[0][0])}, which knobscope did not write; {_EXPECTED}"
            )


def _own_macros() -> Mapping[str, str]:
    """Return the statements that make our macros, by name."""
    scalars = {signature: f"({body})" for signature, body in MACROS.items()}
    tables = {signature: f"TABLE {body}" for signature, body in TABLE_MACROS.items()}
    return {
        signature.partition("(")[0]: f"CREATE TEMP MACRO {signature} AS {body}"
        for signature, body in (scalars | tables).items()
    }


def _define_own(connection: "duckdb.DuckDBPyConnection") -> None:
    """Define macros, and views that the file holds, from our own text; names without a schema mean ours then."""
    stored = {
        row[0] for row in connection.execute("SELECT view_name FROM duckdb_views() WHERE NOT internal").fetchall()
    }
    connection.execute(";".join(_own_macros().values()))
    for name in VIEWS:
        if name in stored:
            connection.execute(f"CREATE TEMP VIEW {name} AS {VIEWS[name]}")


def _read_columns(connection: "duckdb.DuckDBPyConnection") -> dict[str, dict[str, str]]:
    """Return the tables of the file that we know: table -> column -> type."""
    columns: dict[str, dict[str, str]] = {}
    for table, column, kind in connection.execute(
        "SELECT table_name, column_name, data_type FROM duckdb_columns() WHERE NOT internal "
        "AND table_name IN (SELECT table_name FROM duckdb_tables())"
    ).fetchall():
        columns.setdefault(table, {})[column] = kind
    return {table: column_types for table, column_types in columns.items() if table in TABLES or table in VIEWS}


def _check_tables(
    connection: "duckdb.DuckDBPyConnection", database: Path, columns: Mapping[str, Mapping[str, str]]
) -> None:
    """Raise UserError for a column of another type than declared, and for more than any study holds."""
    if "runs" not in columns:
        raise UserError(f"{database}: found no table `runs`; {_EXPECTED}")
    for table, column_types in columns.items():
        for column, kind in column_types.items():
            declared = TABLES.get(table, {}).get(column)
            if kind != declared if declared else not _STRUCTURED.fullmatch(kind):
                raise UserError(
                    f"{database}: column {_show(column)} of table `{table}` has type {_show(kind)}; "
                    f"expected {declared or 'a number, a text or a time'}"
                )
    counts = _ask_tables(connection, dict.fromkeys(columns, "count(*)"))  # takes no look at the rows
    for table, rows in counts.items():
        if rows > MOST_ROWS:
            raise UserError(f"{database}: table `{table}` has {rows:,} rows; expected at most {MOST_ROWS:,}")
    # Of tables that have rows, as half of them do: to plan the query takes longer than to sum up a small study.
    questions = {table: _sum_lengths(column_types) for table, column_types in columns.items() if counts[table]}
    if (text := sum(_ask_tables(connection, questions).values())) > _MOST_TEXT:
        raise UserError(f"{database}: its texts have {text:,} bytes; expected at most {_MOST_TEXT:,}")


def _ask_tables(connection: "duckdb.DuckDBPyConnection", questions: Mapping[str, str]) -> dict[str, int]:
    """Return the answer of each table of ours to an expression."""
    queries = (f"SELECT '{table}', {expression} FROM \"{table}\"" for table, expression in questions.items())  # noqa: S608
    return dict(connection.execute(" UNION ALL ".join(queries)).fetchall()) if questions else {}


def _complete_tables(connection: "duckdb.DuckDBPyConnection", present: Mapping[str, Mapping[str, str]]) -> None:
    """Put temporary tables where the database has none, and empty columns where an earlier version had none."""
    catalog = connection.execute("SELECT current_database()").fetchall()[0][0]
    for table, columns in TABLES.items():
        missing = {name: kind for name, kind in columns.items() if name not in present.get(table, {})}
        if table not in present:
            definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
            connection.execute(f'CREATE TEMP TABLE "{table}" ({definition})')
        elif missing:
            added = ", ".join(f'NULL::{kind} AS "{name}"' for name, kind in missing.items())
            source = f'{_quote(catalog)}.main."{table}"'
            connection.execute(f'CREATE TEMP VIEW "{table}" AS SELECT *, {added} FROM {source}')  # noqa: S608 - own names


def _sum_lengths(columns: Mapping[str, str]) -> str:
    lengths = [f"coalesce(strlen({_quote(name)}), 0)" for name, kind in columns.items() if kind == "VARCHAR"]
    return f"coalesce(sum({' + '.join(lengths)}), 0)" if lengths else "0"


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _show(name: str) -> str:
    """Return a name that a stranger chose, short and printable."""
    return repr(name if len(name) <= 60 else f"{name[:57]}...")
