"""How TPC-C is asked for in YAML."""

from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError
from studies import make_folder

from knobscope.generators import TPCC_TABLES, finish_statements, tpcc_properties
from knobscope.specs import SpecErrors, Workload, load_study


def workload(**parameters: object) -> Workload:
    fields: dict[str, Any] = {"name": "orders", "generator": "tpcc", "class": "write", "records": 3}
    return Workload.model_validate({**fields, "parameters": parameters})


def test_records_are_warehouses() -> None:
    assert tpcc_properties(workload(think_times=True, scale=10)) == {
        "workload": "knobscope.tpcc.TpccWorkload",
        "recordcount": "3",
        "table": "warehouse",
        "tpcc.think_times": "true",
        "tpcc.scale": "10",
    }


@pytest.mark.parametrize(
    "wrong",
    [
        {"scale": 0},
        {"scale": 101},
        {"scale": True},
        {"think_times": 2},
        {"think_times": "no"},
        {"warehouses": 2},
        {"remote_item_share": 15},
        {"payment": 0.5},
        {"new_order": 0, "payment": 0, "order_status": 0, "delivery": 0, "stock_level": 0},
    ],
)
def test_wrong_parameters_are_refused(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        workload(**wrong)


def test_statements_about_the_table_of_ycsb_are_repeated_for_each_table() -> None:
    statements = finish_statements(workload(), ["vacuum analyze usertable", "checkpoint"])
    assert statements == [*(f"vacuum analyze {table}" for table in TPCC_TABLES), "checkpoint"]


def test_a_dbms_without_sql_is_refused(tmp_path: Path) -> None:
    make_folder(tmp_path)
    study = tmp_path / "specs" / "studies" / "orders.yaml"
    study.write_text(
        "{name: orders, description: Orders, dbms: [redis], devices: [local-disk], workloads: {tpcc: {records: 1}},"
        " knobs: {redis: {appendfsync: }}}"
    )
    with pytest.raises(SpecErrors, match=r"TPC-C for redis; expected a DBMS whose binding is knobscope\.JdbcBinding"):
        load_study(study, tmp_path, runnable=False)
