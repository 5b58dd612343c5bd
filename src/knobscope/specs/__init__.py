"""What is asked: DBMSs, devices, workloads and studies as YAML, validated by pydantic models."""

from knobscope.specs.completing.catalogue import KnobCatalogue, add_named_knobs, catalogue_file, read_knob_catalogue
from knobscope.specs.completing.factors import shapes_data, split_configuration
from knobscope.specs.completing.labelled import LabelledSettings, read_labelled_properties, read_labelled_settings
from knobscope.specs.completing.products import select_fields
from knobscope.specs.completing.startable import (
    Refusal,
    RefusedSetting,
    StartableKnob,
    StartableRecord,
    read_record,
    refuse_settings,
)
from knobscope.specs.documents.reference import render_reference
from knobscope.specs.documents.rule_page import render_rules
from knobscope.specs.documents.schema import render_schemas
from knobscope.specs.library import (
    SPECS_VARIABLE,
    Case,
    StudySpecs,
    digest_specs,
    find_case,
    find_specs,
    load_study,
    parse_case,
    validate_files,
)
from knobscope.specs.models.choice import KnobChoice
from knobscope.specs.models.client_host import ClientHost
from knobscope.specs.models.dbms import Clash, Dbms, is_factor
from knobscope.specs.models.device import Device, Emulation
from knobscope.specs.models.device_model import DiskModel, FlashModel
from knobscope.specs.models.drivers import FETCH_DRIVERS, driver_directory, find_driver
from knobscope.specs.models.expression import Expression
from knobscope.specs.models.file_patterns import matches_pattern
from knobscope.specs.models.generator import OUTPUT_PARSERS, TPCC, TPCDS, TPCH, YCSB, Generator
from knobscope.specs.models.introspect import CATALOGUE_KEYS, Introspection, Trial
from knobscope.specs.models.kernel import kernel_knob, split_kernel, with_filesystem
from knobscope.specs.models.knob import Knob
from knobscope.specs.models.lifecycle import Jvm, Lifecycle
from knobscope.specs.models.part import WITH_DATA, Part, part_knob
from knobscope.specs.models.prior import Prior, PriorRanking, check_prior_version, major_version, unranked_knobs
from knobscope.specs.models.programs import (
    Program,
    ask_version,
    clients_directory,
    digest_of,
    find_path,
    find_paths,
    find_program,
    fleet_directory,
    installed_with,
)
from knobscope.specs.models.rule import (
    SHIPPED_RULES,
    VERDICTS,
    Rule,
    RuleCause,
    RuleEffect,
    RuleSpec,
    read_rule,
    read_shipped_rule,
    shipped_rules,
)
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload, factor_knob
from knobscope.specs.models.writing import Moment, Writing
from knobscope.specs.reading.base import Value, suggest, value_text
from knobscope.specs.reading.source import SpecErrors
from knobscope.specs.shelf import read_spec
