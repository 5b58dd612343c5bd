"""Select: which knobs matter, whether enough has been measured, and where the important points of a knob are."""

from knobscope.select.selection import Selection, select_first, select_knobs

__all__ = ["Selection", "select_first", "select_knobs"]
