"""Plan: specs become blocks of runs."""

from knobscope.stages.plan.aims import aim_of, describe_aim, describe_ratio
from knobscope.stages.plan.blocks import plan_row, sentinel_positions
from knobscope.stages.plan.dependents import SweptValue, smallest_change, swept_values
from knobscope.stages.plan.earlier import read_earlier
from knobscope.stages.plan.effort import Effort, effort_of, screening_effort, sweep_effort
from knobscope.stages.plan.narrowing import find_costly, find_failing, narrow
from knobscope.stages.plan.picking import RESPONSIVE, SAMPLERS, Draw, count_random
from knobscope.stages.plan.refused import RefusedValue, list_refused
from knobscope.stages.plan.rounds import (
    case_space,
    identify_sampling,
    list_dependents,
    list_left_out,
    plan_reinforcement,
    plan_screening,
    plan_sweep,
    sampling_method,
    screening_blocks,
    sweep_references,
    value_configurations,
)
from knobscope.stages.plan.sampling import DesignSpace, draw_configurations
