"""The sections of the report: each reads tables of the study and returns what the page shows, in words and figures."""

from knobscope.report.sections.across_cases import effects_by_case
from knobscope.report.sections.devices import DevicesSection, build_devices
from knobscope.report.sections.effects import EffectsSection, build_effects
from knobscope.report.sections.files import FilesSection, build_files
from knobscope.report.sections.findings import FindingsSection, build_findings, draw_pictures
from knobscope.report.sections.head import Head, build_head
from knobscope.report.sections.io_related import IoRelated, build_io_related
from knobscope.report.sections.order import order_figures
from knobscope.report.sections.ranking import RankingSection, build_ranking
from knobscope.report.sections.recovery import build_recoveries
from knobscope.report.sections.runs import RunsSection, build_runs
from knobscope.report.sections.times import time_figures
from knobscope.report.sections.tuning import TuningSection, build_tuning
from knobscope.report.sections.waiting import build_waiting

__all__ = [
    "DevicesSection",
    "EffectsSection",
    "FilesSection",
    "FindingsSection",
    "Head",
    "IoRelated",
    "RankingSection",
    "RunsSection",
    "TuningSection",
    "build_devices",
    "build_effects",
    "build_files",
    "build_findings",
    "build_head",
    "build_io_related",
    "build_ranking",
    "build_recoveries",
    "build_runs",
    "build_tuning",
    "build_waiting",
    "draw_pictures",
    "effects_by_case",
    "order_figures",
    "time_figures",
]
