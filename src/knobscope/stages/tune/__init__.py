"""Stage tune: Optuna on the knobs that matter and on all knobs, through the same measured runs."""

from knobscope.stages.tune.schedule import tuning_blocks
from knobscope.stages.tune.session import count_runs, tune_case
from knobscope.stages.tune.tuner import make_tuners
