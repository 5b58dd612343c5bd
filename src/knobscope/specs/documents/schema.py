"""JSON Schemas of the specs, generated from the models, so that an editor completes and checks the YAML."""

import json
from pathlib import Path
from typing import Any, Literal

from knobscope.document_part import UntitledSchema
from knobscope.specs.completing.exclusions import Exclusions
from knobscope.specs.models.dbms import Dbms
from knobscope.specs.models.device import Device
from knobscope.specs.models.generator import Generator
from knobscope.specs.models.rule import RuleSpec
from knobscope.specs.models.study import Study
from knobscope.specs.models.workload import Workload
from knobscope.specs.reading.base import SpecModel

_MODELS: dict[str, type[SpecModel]] = {
    "dbms": Dbms,
    "device": Device,
    "workload": Workload,
    "generator": Generator,
    "study": Study,
    "rule": RuleSpec,
    "exclusions": Exclusions,
}
#: A DBMS that `extends` another one leaves out what it takes over: below its top, editors require nothing of these.
_EXTENDED = ("Connection", "Files", "Knob", "Lifecycle", "Loading")
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def model_schemas(
    union_format: Literal["any_of", "primitive_type_array"] = "any_of",
) -> dict[str, dict[str, Any]]:
    """Return the schema of every kind of spec, by its name."""
    return {
        kind: {
            "$schema": _DIALECT,
            **model.model_json_schema(by_alias=True, schema_generator=UntitledSchema, union_format=union_format),
        }
        for kind, model in _MODELS.items()
    }


def render_schemas() -> dict[str, str]:
    """Return file name -> text for every kind of spec."""
    schemas = model_schemas("primitive_type_array")
    _allow_extension(schemas["dbms"])
    _allow_likeness(schemas["device"])
    return {f"{kind}.json": json.dumps(schema, indent=2) + "\n" for kind, schema in schemas.items()}


def _allow_extension(schema: dict[str, Any]) -> None:
    """Require all keys only of a DBMS that stands on its own; `knobscope validate` looks at both files together."""
    for name in _EXTENDED:
        schema["$defs"][name].pop("required", None)
    _require_unless(schema, "extends")


def _allow_likeness(schema: dict[str, Any]) -> None:
    """Let a device name another one instead of a model, or as what it differs from."""
    schema["$defs"]["Emulation"]["properties"]["model"]["anyOf"].append({"type": "string"})
    schema["$defs"]["Emulation"].pop("required", None)
    _require_unless(schema, "like")


def _require_unless(schema: dict[str, Any], key: str) -> None:
    """Require all that a spec needs that stands on its own; one with this key takes over what it does not state."""
    required = schema.pop("required")
    schema["if"] = {"required": [key]}
    schema["then"] = {"required": ["name", "description"]}
    schema["else"] = {"required": required}


def write_schemas(directory: Path) -> list[Path]:
    """Write all schemas into a directory; returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in render_schemas().items():
        (directory / name).write_text(text, encoding="utf-8")
        paths.append(directory / name)
    return paths
