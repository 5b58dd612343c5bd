"""Confirm: fio repeats the I/O pattern behind a mismatch and changes one factor."""

from knobscope.stages.confirm.findings import confirm_findings

__all__ = ["confirm_findings"]
