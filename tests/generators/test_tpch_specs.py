"""How TPC-H is asked for in YAML."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from studies import make_folder

from knobscope.errors import UserError
from knobscope.generators import TPCH_TABLES, finish_statements, make_tpch_data, tpch_properties
from knobscope.specs import SpecErrors, Workload, load_study


def workload(records: int = 10, **parameters: object) -> Workload:
    fields: dict[str, Any] = {"name": "books", "generator": "tpch", "class": "read", "records": records}
    return Workload.model_validate({**fields, "parameters": parameters})


def test_records_are_thousandths_of_the_scale_factor() -> None:
    assert tpch_properties(workload(10)) == {
        "workload": "knobscope.tpch.TpchWorkload",
        "recordcount": "100",
        "table": "supplier",
        "tpch.scale_factor": "0.01",
    }
    assert tpch_properties(workload(10_000))["tpch.scale_factor"] == "10"
    assert tpch_properties(workload(1_234_567))["tpch.scale_factor"] == "1234.567"


@pytest.mark.parametrize(
    ("generator", "records", "size"),
    [
        ("ycsb", 20_000, "20,000 records"),
        ("ycsb", 1, "1 record"),
        ("tpcc", 2, "2 warehouses"),
        ("tpch", 100, "scale factor 0.1"),
        ("tpcds", 20, "scale factor 0.02"),
    ],
)
def test_the_size_of_the_data_is_in_the_words_of_the_generator(generator: str, records: int, size: str) -> None:
    fields: dict[str, Any] = {"name": "any", "generator": generator, "class": "read", "records": records}
    assert Workload.model_validate(fields).size == size


def test_parameters_are_refused() -> None:
    with pytest.raises(ValidationError, match="a parameter of tpch"):
        workload(scale=1)


def test_statements_about_the_table_of_ycsb_are_repeated_for_each_table() -> None:
    statements = finish_statements(workload(), ["vacuum analyze usertable", "checkpoint"])
    assert statements == [*(f"vacuum analyze {table}" for table in TPCH_TABLES), "checkpoint"]


@pytest.mark.slow
def test_the_generator_writes_a_file_per_table(tmp_path: Path) -> None:
    books = workload(43)  # 0.043 times 10,000 is less than 430 to a computer
    assert make_tpch_data(books, tmp_path) == {"queries.data": str(tmp_path)}
    assert {path.name for path in tmp_path.iterdir()} == {f"{table}.tbl" for table in TPCH_TABLES}
    assert str((tmp_path / "supplier.tbl").read_text().count("\n")) == tpch_properties(books)["recordcount"]


def test_a_missing_generator_is_said_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "python"))
    with pytest.raises(UserError, match="tpchgen-cli, which is not there; run `make setup`"):
        make_tpch_data(workload(1), tmp_path)


def test_a_dbms_without_sql_is_refused(tmp_path: Path) -> None:
    make_folder(tmp_path)
    study = tmp_path / "specs" / "studies" / "books.yaml"
    study.write_text(
        "{name: books, description: Books, dbms: [redis], devices: [local-disk], workloads: {tpch: {records: 10}},"
        " knobs: {redis: {appendfsync: }}}"
    )
    with pytest.raises(SpecErrors, match=r"TPC-H for redis; expected a DBMS whose binding is knobscope\.JdbcBinding"):
        load_study(study, tmp_path, runnable=False)
