"""Report: one page for people, pictures first."""

from knobscope.stages.report.page import render_report
