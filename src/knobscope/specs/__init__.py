"""What is asked: DBMSs, devices, workloads and studies as YAML, validated by pydantic models."""

from knobscope.specs.base import Value
from knobscope.specs.check import find_program
from knobscope.specs.dbms import Dbms
from knobscope.specs.device import Device, Emulation
from knobscope.specs.expression import Expression
from knobscope.specs.knob import Knob
from knobscope.specs.library import Case, StudySpecs, find_specs, load_study, read_spec, validate_files
from knobscope.specs.reference import render_reference, write_reference
from knobscope.specs.schema import render_schemas, write_schemas
from knobscope.specs.source import SpecErrors, SpecProblem
from knobscope.specs.study import RULES, KnobChoice, Study
from knobscope.specs.workload import Workload

__all__ = [
    "RULES",
    "Case",
    "Dbms",
    "Device",
    "Emulation",
    "Expression",
    "Knob",
    "KnobChoice",
    "SpecErrors",
    "SpecProblem",
    "Study",
    "StudySpecs",
    "Value",
    "Workload",
    "find_program",
    "find_specs",
    "load_study",
    "read_spec",
    "render_reference",
    "render_schemas",
    "validate_files",
    "write_reference",
    "write_schemas",
]
