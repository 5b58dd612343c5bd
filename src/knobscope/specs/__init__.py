"""What is asked: DBMSs, devices, workloads and studies as YAML, validated by pydantic models."""

from knobscope.specs.base import Value, suggest
from knobscope.specs.catalogue import KnobCatalogue, add_named_knobs, catalogue_file, read_knob_catalogue
from knobscope.specs.dbms import Dbms
from knobscope.specs.device import Device, Emulation
from knobscope.specs.expression import Expression
from knobscope.specs.generator import OUTPUT_PARSERS, TPCC, TPCDS, TPCH, YCSB, Generator
from knobscope.specs.introspect import CATALOGUE_KEYS, Introspection, Trial
from knobscope.specs.knob import Knob
from knobscope.specs.library import Case, StudySpecs, find_specs, load_study, read_spec, validate_files
from knobscope.specs.lifecycle import Lifecycle
from knobscope.specs.prior import FittedModel, FittedRanking, RankedKnob, check_prior_version, major_version
from knobscope.specs.programs import Program, ask_version, find_path, find_paths, find_program
from knobscope.specs.reference import render_reference, write_reference
from knobscope.specs.schema import render_schemas, write_schemas
from knobscope.specs.source import SpecErrors, SpecProblem
from knobscope.specs.startable import Refusal, StartableKnob, StartableRecord, read_records
from knobscope.specs.study import RULES, KnobChoice, Study
from knobscope.specs.workload import Workload
from knobscope.specs.writing import Moment, Writing

__all__ = [
    "CATALOGUE_KEYS",
    "OUTPUT_PARSERS",
    "RULES",
    "TPCC",
    "TPCDS",
    "TPCH",
    "YCSB",
    "Case",
    "Dbms",
    "Device",
    "Emulation",
    "Expression",
    "FittedModel",
    "FittedRanking",
    "Generator",
    "Introspection",
    "Knob",
    "KnobCatalogue",
    "KnobChoice",
    "Lifecycle",
    "Moment",
    "Program",
    "RankedKnob",
    "Refusal",
    "SpecErrors",
    "SpecProblem",
    "StartableKnob",
    "StartableRecord",
    "Study",
    "StudySpecs",
    "Trial",
    "Value",
    "Workload",
    "Writing",
    "add_named_knobs",
    "ask_version",
    "catalogue_file",
    "check_prior_version",
    "find_path",
    "find_paths",
    "find_program",
    "find_specs",
    "load_study",
    "major_version",
    "read_knob_catalogue",
    "read_records",
    "read_spec",
    "render_reference",
    "render_schemas",
    "suggest",
    "validate_files",
    "write_reference",
    "write_schemas",
]
