"""Report: one page for people, pictures first."""

from knobscope.report.page import render_report

__all__ = ["render_report"]
