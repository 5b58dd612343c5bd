"""Select: which knobs matter, whether enough has been measured, and where the important points of a knob are."""

from knobscope.stages.select.selection import select_first, select_knobs
from knobscope.stages.select.warm_start import list_rankings, read_priors
