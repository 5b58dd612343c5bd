"""Confirm: fio repeats the I/O pattern behind a mismatch and changes one factor."""

from knobscope.stages.imitate.findings import imitate_findings
