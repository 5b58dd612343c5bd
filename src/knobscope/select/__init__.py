"""Select: which knobs matter, whether enough has been measured, and where the important points of a knob are."""

from knobscope.select.models import MODELS
from knobscope.select.points import Point, find_points
from knobscope.select.selection import Selection, select_knobs

__all__ = ["MODELS", "Point", "Selection", "find_points", "select_knobs"]
