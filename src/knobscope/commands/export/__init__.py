"""Export: the search space over the knobs that matter, in the formats of tuners."""

from knobscope.commands.export.formats import FORMATS, to_mlos, to_optuna, to_smac
from knobscope.commands.export.ranking import chosen_case, ranked_knobs

__all__ = ["FORMATS", "chosen_case", "ranked_knobs", "to_mlos", "to_optuna", "to_smac"]
