"""Measure: blocks of runs on real servers and devices, watched by the monitor."""

from knobscope.stages.measure.block import Measurer, measure_block, write_block
from knobscope.stages.measure.cutting import Cutter, count_losses, cut_case, loses_more, open_cutter
from knobscope.stages.measure.opening import open_measurer
from knobscope.stages.measure.power_cut import PowerCut, cut_power
from knobscope.stages.measure.progress import BlockProgress
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.measure.store import RunStore, run_id_of
from knobscope.stages.measure.validity import RunFailedError, check_result

__all__ = [
    "Bench",
    "BlockProgress",
    "Cutter",
    "Measurer",
    "PowerCut",
    "RunFailedError",
    "RunStore",
    "check_result",
    "count_losses",
    "cut_case",
    "cut_power",
    "loses_more",
    "measure_block",
    "measure_run",
    "open_cutter",
    "open_measurer",
    "run_id_of",
    "write_block",
]
