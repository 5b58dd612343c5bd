"""The sections of the report: each reads tables of the study and returns what the page shows, in words and figures."""

from knobscope.stages.report.sections.across_cases import effects_by_case
from knobscope.stages.report.sections.budgets import CaseBudget, build_budgets
from knobscope.stages.report.sections.devices import DevicesSection, build_devices
from knobscope.stages.report.sections.effects import EffectsSection, build_effects
from knobscope.stages.report.sections.fastest import list_fastest
from knobscope.stages.report.sections.findings import FindingsSection, build_findings, draw_pictures
from knobscope.stages.report.sections.head import build_head
from knobscope.stages.report.sections.io_related import build_io_related
from knobscope.stages.report.sections.operation_io import CaseOperationIo, build_operation_io
from knobscope.stages.report.sections.ranking import RankingSection, build_ranking
from knobscope.stages.report.sections.recovery import build_recoveries
from knobscope.stages.report.sections.runs import RunsSection, build_runs
from knobscope.stages.report.sections.sequentiality import order_figures
from knobscope.stages.report.sections.statements import build_statements
from knobscope.stages.report.sections.times import time_figures
from knobscope.stages.report.sections.traffic import FilesSection, build_files
from knobscope.stages.report.sections.tuning import build_tuning
from knobscope.stages.report.sections.waiting import build_waiting
