"""Import: a table of runs that were measured elsewhere becomes a study for `detect` and `report`."""

from knobscope.commands.importing.columns import KNOB_COLUMNS, REQUIRED, RUN_COLUMNS, SIDE_TABLES
from knobscope.commands.importing.runs import ImportedRun, read_runs
from knobscope.commands.importing.study import ImportedStudy, write_study

__all__ = [
    "KNOB_COLUMNS",
    "REQUIRED",
    "RUN_COLUMNS",
    "SIDE_TABLES",
    "ImportedRun",
    "ImportedStudy",
    "read_runs",
    "write_study",
]
