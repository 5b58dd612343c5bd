"""Stage 4, measure: blocks of runs on real servers and devices, watched by the monitor."""

from knobscope.measure.block import BLOCK_TABLES, measure_block, write_block
from knobscope.measure.run import Bench, measure_run
from knobscope.measure.store import MEASURE_VERSION, RunStore, run_id_of
from knobscope.measure.validity import RunFailedError, check_result

__all__ = [
    "BLOCK_TABLES",
    "MEASURE_VERSION",
    "Bench",
    "RunFailedError",
    "RunStore",
    "check_result",
    "measure_block",
    "measure_run",
    "run_id_of",
    "write_block",
]
