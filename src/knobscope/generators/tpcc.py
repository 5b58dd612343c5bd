"""TPC-C: what it needs beyond YCSB's own workloads, with which it shares the load client (docs/reference/tpcc.md)."""

from knobscope.specs import Workload

#: Tables of clause 1.3; `orders`, because `order` is a word of SQL.
TPCC_TABLES = (
    "warehouse",
    "district",
    "customer",
    "history",
    "orders",
    "new_order",
    "order_line",
    "item",
    "stock",
)
#: About a warehouse without indexes; the check for room on the disk multiplies it.
WAREHOUSE_BYTES = 80 * 1024**2

_CLASS = "knobscope.tpcc.TpccWorkload"


def tpcc_properties(workload: Workload) -> dict[str, str]:
    """Return the properties of the load client for a workload whose generator is tpcc."""
    own = {f"tpcc.{name}": str(value).lower() for name, value in workload.parameters.items()}
    return {"workload": _CLASS, "recordcount": str(workload.records), "table": "warehouse", **own}
