"""Stage remeasure: mismatches are measured again, also on what-if devices, which show the cause."""

from knobscope.stages.remeasure.effort import count_remeasuring_runs, expect_remeasuring_runs
