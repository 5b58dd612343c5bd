"""What TPC-C, TPC-H and TPC-DS have in common when they are asked for in YAML."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from studies import make_folder, write_study

from knobscope.generators import TPCC_TABLES, TPCDS_TABLES, TPCH_TABLES, finish_statements
from knobscope.specs import SpecErrors, Workload, load_study


def workload(generator: str, records: int = 10, **parameters: object) -> Workload:
    fields: dict[str, Any] = {"name": "any", "generator": generator, "class": "read", "records": records}
    return Workload.model_validate({**fields, "parameters": parameters})


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
    assert workload(generator, records).size == size


@pytest.mark.parametrize("generator", ["tpch", "tpcds"])
def test_parameters_are_refused(generator: str) -> None:
    with pytest.raises(ValidationError, match=f"a parameter of {generator}"):
        workload(generator, scale=1)


@pytest.mark.parametrize(
    ("generator", "tables"), [("tpcc", TPCC_TABLES), ("tpch", TPCH_TABLES), ("tpcds", TPCDS_TABLES)]
)
def test_statements_about_the_table_of_ycsb_are_repeated_for_each_table(generator: str, tables: list[str]) -> None:
    statements = finish_statements(workload(generator), ["vacuum analyze usertable", "checkpoint"])
    assert statements == [*(f"vacuum analyze {table}" for table in tables), "checkpoint"]


@pytest.mark.parametrize(("generator", "benchmark"), [("tpcc", "TPC-C"), ("tpch", "TPC-H")])
def test_a_dbms_without_sql_is_refused(generator: str, benchmark: str, tmp_path: Path) -> None:
    text = f"{{name: any, description: Any, dbms: [redis], devices: [local-disk], workloads: {{{generator}: }},"
    study = write_study(make_folder(tmp_path), "any", f"{text} knobs: {{redis: {{appendfsync: }}}}}}")
    expected = rf"{benchmark} for redis; expected a DBMS whose binding is knobscope\.JdbcBinding"
    with pytest.raises(SpecErrors, match=expected):
        load_study(study, tmp_path, runnable=False)
