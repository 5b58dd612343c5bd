"""Detect: the study's database, effects of single knobs, and the mismatch rules."""

from knobscope.stages.detect.blocks import CONFOUNDED
from knobscope.stages.detect.database import (
    StudyFiles,
    build_database,
    create_schema,
    read_findings,
    read_rows,
    replace_effects,
    withdraw,
    write_findings,
    write_rows,
)
from knobscope.stages.detect.effects import effects_of_case
from knobscope.stages.detect.evidence import find_busy_share, find_runs_behind
from knobscope.stages.detect.guards import find_stalled_runs
from knobscope.stages.detect.io_related import IO_RESPONSES, io_marks_comparison, read_io_profiles
from knobscope.stages.detect.metrics import METRICS
from knobscope.stages.detect.mismatches import Mismatch, merge_findings
from knobscope.stages.detect.one_profile import WatchedProfile, has_other_unit, judge_profile
from knobscope.stages.detect.pauses import Pause, describe_paused, read_pauses
from knobscope.stages.detect.penalties import is_timed, most_gain
from knobscope.stages.detect.rule_queries import RULE_COLUMNS, check_queries
from knobscope.stages.detect.rules import find_excuse, is_own_knob, run_rules
from knobscope.stages.detect.value_order import steps_from
from knobscope.stages.detect.winners import complete_fastest, list_winners
from knobscope.tables.views import VIEWS
