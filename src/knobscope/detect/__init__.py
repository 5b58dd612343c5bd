"""Stage 6, detect: the study's database, effects of single knobs, and the mismatch rules."""

from knobscope.detect.command import describe_findings
from knobscope.detect.database import StudyFiles, add_table, build_database
from knobscope.detect.effects import add_effects, effects_of_case
from knobscope.detect.io_related import IO_RESPONSES, io_marks_comparison
from knobscope.detect.metrics import METRICS, Metric
from knobscope.detect.order import steps_from, value_text
from knobscope.detect.regression import BlockFit, adjust_for_fdr, fit_blocks
from knobscope.detect.rules import FINDING_COLUMNS, VERDICTS, run_rules
from knobscope.detect.views import MACROS, VIEWS

__all__ = [
    "FINDING_COLUMNS",
    "IO_RESPONSES",
    "MACROS",
    "METRICS",
    "VERDICTS",
    "VIEWS",
    "BlockFit",
    "Metric",
    "StudyFiles",
    "add_effects",
    "add_table",
    "adjust_for_fdr",
    "build_database",
    "describe_findings",
    "effects_of_case",
    "fit_blocks",
    "io_marks_comparison",
    "run_rules",
    "steps_from",
    "value_text",
]
