"""Load generators. One today: YCSB's own Java client with knobscope's bindings and timing (`clients/`)."""

from knobscope.generators.clients import find_clients
from knobscope.generators.failure import GeneratorError
from knobscope.generators.results import LoadResult
from knobscope.generators.session import Session
from knobscope.generators.ycsb import Connected, YcsbRun, load_records, read_back

__all__ = [
    "Connected",
    "GeneratorError",
    "LoadResult",
    "Session",
    "YcsbRun",
    "find_clients",
    "load_records",
    "read_back",
]
