"""How TPC-C is asked for in YAML."""

from typing import Any

import pytest
from pydantic import ValidationError

from knobscope.generators import tpcc_properties
from knobscope.specs import Workload


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
