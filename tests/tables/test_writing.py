"""Tables as parquet files: types, missing cells, and names that are not known."""

from pathlib import Path

import duckdb
import pytest

from knobscope.tables import TABLES, read_table, write_table


def test_cells_keep_their_values_whatever_is_next_to_them(tmp_path: Path) -> None:
    """Values of a knob are text; a study hands them over as YAML read them."""
    values = ["wal", 8, 2.5, True, False, None, 10**19, ""]
    rows = [{"config_id": str(number), "value": value} for number, value in enumerate(values)]
    write_table(tmp_path / "knob_values.parquet", "knob_values", rows)
    with duckdb.connect() as connection:
        found = connection.execute("SELECT value FROM read_parquet(?)", [str(tmp_path / "knob_values.parquet")])
        assert [value for (value,) in found.fetchall()] == ["wal", "8", "2.5", "true", "false", None, str(10**19), ""]


@pytest.mark.slow
@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_columns_and_types_are_those_of_the_table_without_any_value(tmp_path: Path, rows: int) -> None:
    with duckdb.connect() as connection:
        for table in TABLES if rows == 1 else ("runs", "io_profile"):
            path = tmp_path / f"{table}.parquet"
            write_table(path, table, [{}] * rows)
            described = connection.execute("DESCRIBE SELECT * FROM read_parquet(?)", [str(path)]).fetchall()
            assert {name: kind for name, kind, *_ in described} == dict(TABLES[table])
        assert len(read_table([path])) == rows


def test_an_unknown_column_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(KeyError, match="knob_values has no columns"):
        write_table(tmp_path / "out.parquet", "knob_values", [{"knbo": "x"}])
    assert not list(tmp_path.iterdir())
