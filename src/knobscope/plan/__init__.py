"""Stage 1, plan: specs become blocks of runs."""

from knobscope.plan.command import parse_case
from knobscope.plan.picking import RESPONSIVE, SAMPLERS, Draw, count_random
from knobscope.plan.rounds import case_space, list_left_out, plan_screening, plan_sweep, screening_blocks
from knobscope.plan.sampling import Space, draw_configurations

__all__ = [
    "RESPONSIVE",
    "SAMPLERS",
    "Draw",
    "Space",
    "case_space",
    "count_random",
    "draw_configurations",
    "list_left_out",
    "parse_case",
    "plan_screening",
    "plan_sweep",
    "screening_blocks",
]
