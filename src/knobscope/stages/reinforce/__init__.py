"""Repeat: whether the sweep of a case has been measured often enough, and which values to measure again."""

from knobscope.stages.reinforce.decision import decide
from knobscope.stages.reinforce.precision import SweepRuns, count_more, measure_precision
