"""The machine code of a DBMS: which of its functions read a knob, and what calls lead from there to storage."""

from knobscope.machine_code.program import Program
from knobscope.machine_code.readers import MOST_CALLS, Code, Reader, compare_neighbours, find_server, read_code
