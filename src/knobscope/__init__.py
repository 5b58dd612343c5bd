"""knobscope finds the knobs that matter on a storage device, and where DBMS and device do not fit."""

__version__ = "0.4.0.dev0"
