"""The workloads that the load client runs: YCSB's own and, with tables of their own, TPC-C, TPC-H and TPC-DS."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from knobscope.generators.tpcc import TPCC_TABLES, WAREHOUSE_BYTES, tpcc_properties
from knobscope.generators.tpcds import TPCDS_TABLES, make_tpcds_data, tpcds_properties
from knobscope.generators.tpch import TPCH_TABLES, make_tpch_data, tpch_properties
from knobscope.specs import TPCC, TPCDS, TPCH, Workload

_YCSB_RECORD_BYTES = 1024
#: YCSB's keys are hashed numbers, so that records are loaded in no order of the keys, or the numbers themselves. With
#: as many digits as a hash these are as long, and their order is that of the text.
_IN_ORDER = {"insertorder": "ordered", "zeropadding": "19"}
#: Said, as the workload may state others.
_SHUFFLED = {"insertorder": "hashed", "zeropadding": "1"}
_LOADING_THREADS = 8
#: About a thousandth of scale factor 1 without indexes.
_THOUSANDTH_BYTES = 1024**2


@dataclass(frozen=True)
class _Suite:
    """A workload with tables of its own."""

    tables: Sequence[str]
    properties: Callable[[Workload], dict[str, str]]
    record_bytes: Callable[[Workload], int]
    make_files: Callable[[Workload, Path], dict[str, str]] | None = None


_SUITES = {
    TPCC: _Suite(TPCC_TABLES, tpcc_properties, lambda load: WAREHOUSE_BYTES // int(load.parameters.get("scale", 1))),
    TPCH: _Suite(TPCH_TABLES, tpch_properties, lambda _: _THOUSANDTH_BYTES, make_tpch_data),
    TPCDS: _Suite(TPCDS_TABLES, tpcds_properties, lambda _: _THOUSANDTH_BYTES, make_tpcds_data),
}


def has_own_tables(workload: Workload) -> bool:
    """Return whether the client makes the tables itself, instead of YCSB's `usertable`."""
    return workload.generator in _SUITES


def client_properties(workload: Workload) -> dict[str, str]:
    """Return the properties of the load client for a workload."""
    suite = _SUITES.get(workload.generator)
    if suite is not None:
        return suite.properties(workload)
    load_order = workload.parameters.get("load_order")
    order = {} if load_order is None else _SHUFFLED if load_order == "shuffled" else _IN_ORDER
    stated = {name: str(value) for name, value in workload.parameters.items()}
    return {"recordcount": str(workload.records), **stated, **order}


def loading_threads(workload: Workload) -> int:
    """Return how many threads load the data; each takes the next key and commits its rows in batches of its own."""
    return _LOADING_THREADS if workload.parameters.get("load_order") == "threads" else 1


def make_files(workload: Workload, directory: Path) -> dict[str, str]:
    """Write the rows that a load reads from files; return the properties that tell the client, none for most loads."""
    suite = _SUITES.get(workload.generator)
    return suite.make_files(workload, directory) if suite is not None and suite.make_files is not None else {}


def record_bytes(workload: Workload) -> int:
    """Return about how many bytes each of a workload's `records` takes, without indexes."""
    suite = _SUITES.get(workload.generator)
    return suite.record_bytes(workload) if suite is not None else _YCSB_RECORD_BYTES


def own_tables(workload: Workload) -> Sequence[str]:
    """Return the tables of a workload that has its own."""
    suite = _SUITES.get(workload.generator)
    return suite.tables if suite is not None else ()


def finish_statements(workload: Workload, statements: Sequence[str]) -> list[str]:
    """Return what follows loading: a statement about YCSB's only table is repeated for each table of the workload."""
    suite = _SUITES.get(workload.generator)
    tables = suite.tables if suite is not None else ("usertable",)
    return [
        repeated
        for statement in statements
        for repeated in dict.fromkeys(re.sub(r"\busertable\b", table, statement) for table in tables)
    ]
