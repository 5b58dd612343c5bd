"""Load generators: YCSB's own Java client with knobscope's bindings and timing (`clients/`), and others by spec."""

from knobscope.generators.clients import find_clients
from knobscope.generators.command_run import CommandRun, GeneratorCall, load_data
from knobscope.generators.failure import GeneratorError
from knobscope.generators.results import LoadResult
from knobscope.generators.session import Session
from knobscope.generators.tpcc import TPCC_TABLES, WAREHOUSE_BYTES, finish_tpcc, tpcc_properties
from knobscope.generators.ycsb import Connected, YcsbRun, load_records, read_back

__all__ = [
    "TPCC_TABLES",
    "WAREHOUSE_BYTES",
    "CommandRun",
    "Connected",
    "GeneratorCall",
    "GeneratorError",
    "LoadResult",
    "Session",
    "YcsbRun",
    "find_clients",
    "finish_tpcc",
    "load_data",
    "load_records",
    "read_back",
    "tpcc_properties",
]
