"""`knobscope show`: one run of a study, from its results."""

from knobscope.commands.show.page import format_run
from knobscope.commands.show.reading import ShownRun, find_run

__all__ = ["ShownRun", "find_run", "format_run"]
