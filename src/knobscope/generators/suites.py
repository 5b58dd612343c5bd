"""The workloads that the load client runs: YCSB's own and, with tables of their own, TPC-C and TPC-H."""

import re
from collections.abc import Sequence

from knobscope.generators.tpcc import TPCC_TABLES, WAREHOUSE_BYTES, tpcc_properties
from knobscope.generators.tpch import THOUSANDTH_BYTES, TPCH_TABLES, tpch_properties
from knobscope.specs import TPCC, TPCH, Workload

__all__ = ["client_properties", "finish_statements", "has_own_tables", "record_bytes"]

_TABLES = {TPCC: TPCC_TABLES, TPCH: TPCH_TABLES}
_YCSB_RECORD_BYTES = 1024


def has_own_tables(workload: Workload) -> bool:
    """Return whether the client makes the tables itself, in place of YCSB's `usertable`."""
    return workload.generator in _TABLES


def client_properties(workload: Workload) -> dict[str, str]:
    """Return the properties of the load client for a workload."""
    if workload.generator == TPCC:
        return tpcc_properties(workload)
    if workload.generator == TPCH:
        return tpch_properties(workload)
    return {"recordcount": str(workload.records), **{name: str(value) for name, value in workload.parameters.items()}}


def record_bytes(workload: Workload) -> int:
    """Return about how many bytes each of a workload's `records` takes, without indexes."""
    if workload.generator == TPCC:
        return WAREHOUSE_BYTES // int(workload.parameters.get("scale", 1))
    return THOUSANDTH_BYTES if workload.generator == TPCH else _YCSB_RECORD_BYTES


def finish_statements(workload: Workload, statements: Sequence[str]) -> list[str]:
    """Return what follows loading: a statement about YCSB's only table is repeated for each table of the workload."""
    tables = _TABLES.get(workload.generator, ("usertable",))
    return [
        repeated
        for statement in statements
        for repeated in dict.fromkeys(re.sub(r"\busertable\b", table, statement) for table in tables)
    ]
