"""TPC-DS: its data and queries, made by DuckDB's extension, and what it needs beyond YCSB (docs/reference/tpcds.md)."""

import csv
import json
from collections.abc import Iterator
from pathlib import Path

from knobscope.errors import UserError
from knobscope.generators.rows import make_rows
from knobscope.generators.tpcds_texts import in_order, translate, with_safe_divisors
from knobscope.specs import Program, Workload, find_program

#: The Python whose packages have the generator.
DSDGEN = Program(find=["tpcds/bin/python"], install="setup/fleet.sh tpcds")
#: Tables of clauses 2.3 and 2.4.
TPCDS_TABLES = (
    "call_center",
    "catalog_page",
    "catalog_returns",
    "catalog_sales",
    "customer",
    "customer_address",
    "customer_demographics",
    "date_dim",
    "household_demographics",
    "income_band",
    "inventory",
    "item",
    "promotion",
    "reason",
    "ship_mode",
    "store",
    "store_returns",
    "store_sales",
    "time_dim",
    "warehouse",
    "web_page",
    "web_returns",
    "web_sales",
    "web_site",
)

_PROGRAM = Path(__file__).with_name("dsdgen.py")
_CLASS = "knobscope.tpcds.TpcdsWorkload"
_DBMS = ("DuckDB", "PostgreSQL")  # as their drivers call them
_DAYS = 73049  # rows of date_dim at every scale factor, which are counted after loading


def tpcds_properties(workload: Workload) -> dict[str, str]:
    """Return the properties of the load client for a workload whose generator is tpcds."""
    return {"workload": _CLASS, "recordcount": str(_DAYS), "table": "date_dim"}


def make_tpcds_data(workload: Workload, directory: Path) -> dict[str, str]:
    """Write rows and queries into files of `directory`; return the property that tells the load client.

    Raises UserError when the generator is not installed, GeneratorError with its words when it fails.
    """
    python = find_program(DSDGEN)
    if python is None:
        raise UserError(f"TPC-DS needs its generator, which is not there; run {DSDGEN.remedy}")
    command = [str(python), "-I", str(_PROGRAM), workload.scale_factor, str(directory)]
    make_rows("dsdgen", command)
    with (directory / "tpcds_queries.csv").open("w", newline="") as file:
        csv.writer(file, delimiter="|", lineterminator="\n").writerows(_query_rows(directory / "queries.json"))
    return {"queries.data": str(directory)}


def _query_rows(queries: Path) -> Iterator[tuple[int, str, str]]:
    """Yield number, DBMS and text of each query."""
    for query in json.loads(queries.read_text()):
        number, text = query["number"], with_safe_divisors(in_order(query["text"], query["columns"]))
        for dbms in _DBMS:
            yield number, dbms, translate(number, text, dbms)
