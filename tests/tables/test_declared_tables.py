"""Tables are declared once: types of rows, columns and meanings agree, and a record of a run has all of them."""

from pathlib import Path
from typing import get_type_hints

import duckdb
import pytest

from knobscope.tables import BLOCK_TABLES, COLUMNS, ROWS, TABLES, RunRecord
from knobscope.tables.declaring import Column, columns_of
from knobscope.tables.reference import comment_tables, define_tables, render_tables

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("table", ROWS)
def test_every_column_says_in_a_sentence_what_it_means(table: str) -> None:
    assert (ROWS[table].__doc__ or "").strip().endswith(".")
    for column in COLUMNS[table].values():
        assert column.meaning.endswith("."), column
        assert column.meaning[0].isupper() or not column.meaning[0].isalpha() or column.meaning.startswith("p value")
        duckdb.sql(f"SELECT NULL::{column.type}")


def test_a_record_of_a_run_has_a_row_type_for_every_table_about_single_runs() -> None:
    others = {"runs", "trials", "what_if_runs", "set_aside_runs"}
    about_runs = {table for table, columns in TABLES.items() if "run_id" in columns} - others
    assert set(BLOCK_TABLES) == about_runs
    for table, rows in get_type_hints(RunRecord).items():
        assert rows in (list[ROWS.get(table, object)], ROWS["runs"])  # type: ignore[misc]


def test_units_come_from_the_ends_of_names() -> None:
    units = {name: Column(name, "DOUBLE", "").unit for name in ("latency_p95_us", "t_s", "time_ns", "bytes", "low_s")}
    assert units == {"latency_p95_us": "µs", "t_s": "s", "time_ns": "ns", "bytes": "bytes", "low_s": "s"}
    assert Column("runs", "INTEGER", "").unit == ""


def test_the_page_on_tables_is_current() -> None:
    assert (ROOT / "docs/reference/tables.md").read_text() == render_tables(), "run `make docs`"


def test_a_database_knows_what_its_columns_mean() -> None:
    with duckdb.connect() as connection:
        for statement in (*define_tables(), *comment_tables()):
            connection.execute(statement)
        told = connection.execute("SELECT table_name, column_name, comment FROM duckdb_columns() WHERE NOT internal")
        comments = {(table, column): comment for table, column, comment in told.fetchall()}
    assert comments == {
        (table, name): one.meaning for table, columns in COLUMNS.items() for name, one in columns.items()
    }


def test_a_column_without_a_meaning_is_refused() -> None:
    from knobscope.tables.declaring import Text

    bare = type("Bare", (), {"__annotations__": {"name": Text}})
    with pytest.raises(TypeError, match="column name: expected one type and one meaning"):
        columns_of(bare)
