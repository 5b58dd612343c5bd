"""Which values of its numeric knobs a DBMS starts with: tried for real, recorded once per version."""

from knobscope.commands.startable.search import NothingStartsError, search_range
from knobscope.commands.startable.trials import open_trials
