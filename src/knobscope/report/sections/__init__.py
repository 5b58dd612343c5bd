"""The sections of the report: each reads tables of the study and returns what the page shows, in words and figures."""

from knobscope.report.sections.devices import DevicesSection, build_devices
from knobscope.report.sections.effects import EffectsSection, build_effects
from knobscope.report.sections.findings import FindingsSection, build_findings
from knobscope.report.sections.head import Head, build_head
from knobscope.report.sections.ranking import RankingSection, build_ranking
from knobscope.report.sections.runs import RunsSection, build_runs

__all__ = [
    "DevicesSection",
    "EffectsSection",
    "FindingsSection",
    "Head",
    "RankingSection",
    "RunsSection",
    "build_devices",
    "build_effects",
    "build_findings",
    "build_head",
    "build_ranking",
    "build_runs",
]
