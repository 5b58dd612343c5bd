"""Stage 1, plan: specs become blocks of runs."""

from knobscope.plan.command import parse_case
from knobscope.plan.rounds import case_space, plan_screening, plan_sweep, screening_blocks

__all__ = ["case_space", "parse_case", "plan_screening", "plan_sweep", "screening_blocks"]
