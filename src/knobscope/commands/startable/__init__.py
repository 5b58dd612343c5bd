"""Which values of its numeric knobs a DBMS starts with: tried for real, recorded once per version."""

from knobscope.commands.startable.asked import asked_range, numeric_knobs
from knobscope.commands.startable.search import Found, NothingStartsError, Refused, search_range
from knobscope.commands.startable.trials import Trials, open_trials

__all__ = [
    "Found",
    "NothingStartsError",
    "Refused",
    "Trials",
    "asked_range",
    "numeric_knobs",
    "open_trials",
    "search_range",
]
