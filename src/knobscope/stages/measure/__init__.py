"""Measure: blocks of runs on real servers and devices, watched by the monitor."""

from knobscope.stages.measure.block import Measurer, write_block
from knobscope.stages.measure.cutting import count_losses, cut_case, loses_more, open_cutter
from knobscope.stages.measure.opening import open_measurer
from knobscope.stages.measure.power_cut import PowerCut
from knobscope.stages.measure.progress import BlockProgress
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.measure.store import RunStore
from knobscope.stages.measure.validity import RunFailedError, check_result
