"""Stage explain: the DBMS runs again on what-if devices, to find the property of the device that is the cause."""

from knobscope.stages.explain.properties import what_if_devices
from knobscope.stages.explain.questions import count_explaining_runs

__all__ = ["count_explaining_runs", "what_if_devices"]
