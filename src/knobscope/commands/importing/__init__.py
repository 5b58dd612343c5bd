"""Import: a table of runs that were measured elsewhere becomes a study for `detect` and `report`."""

from knobscope.commands.importing.columns import SIDE_TABLES
