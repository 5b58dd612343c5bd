"""Export: the search space over the knobs that matter, in the formats of tuners."""

from knobscope.commands.export.formats import to_mlos, to_optuna, to_smac
