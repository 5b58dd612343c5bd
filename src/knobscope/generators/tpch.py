"""TPC-H: its data, made by tpchgen-cli, and what it needs beyond YCSB's own workloads (docs/reference/tpch.md)."""

import sys
from pathlib import Path

from knobscope.errors import UserError
from knobscope.generators.rows import make_rows
from knobscope.specs import Workload

#: Tables of clause 1.4.
TPCH_TABLES = ("region", "nation", "part", "supplier", "partsupp", "customer", "orders", "lineitem")

_CLASS = "knobscope.tpch.TpchWorkload"
_SUPPLIERS = 10_000  # of scale factor 1: the rows that are counted after loading


def tpch_properties(workload: Workload) -> dict[str, str]:
    """Return the properties of the load client for a workload whose generator is tpch."""
    factor = workload.scale_factor
    suppliers = str(int(float(factor) * _SUPPLIERS))  # as tpchgen-cli calculates them: 429 of 0.043, not 430
    return {"workload": _CLASS, "recordcount": suppliers, "table": "supplier", "tpch.scale_factor": factor}


def make_tpch_data(workload: Workload, directory: Path) -> dict[str, str]:
    """Write the rows of all tables into files of `directory`; return the property that tells the load client.

    Raises UserError when tpchgen-cli is not installed, GeneratorError with its words when it fails.
    """
    program = Path(sys.executable).with_name("tpchgen-cli")
    if not program.is_file():
        raise UserError(f"TPC-H needs {program}, which is not there; run `make setup` in the checkout")
    command = [str(program), "tbl", "--scale-factor", workload.scale_factor, "--output-dir", str(directory)]
    make_rows("tpchgen-cli", command)
    return {"queries.data": str(directory)}
