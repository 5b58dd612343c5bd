"""JSON Schemas of the specs, generated from the models, so that an editor completes and checks the YAML."""

import json
from pathlib import Path
from typing import Any

from knobscope.specs.base import SpecModel
from knobscope.specs.dbms import Dbms
from knobscope.specs.device import Device
from knobscope.specs.study import Study
from knobscope.specs.workload import Workload

__all__ = ["model_schemas", "render_schemas", "write_schemas"]

_MODELS: dict[str, type[SpecModel]] = {"dbms": Dbms, "device": Device, "workload": Workload, "study": Study}
_DIALECT = "https://json-schema.org/draft/2020-12/schema"


def model_schemas() -> dict[str, dict[str, Any]]:
    """Return the schema of every kind of spec, by its name."""
    return {kind: {"$schema": _DIALECT, **model.model_json_schema(by_alias=True)} for kind, model in _MODELS.items()}


def render_schemas() -> dict[str, str]:
    """Return file name -> text for every kind of spec."""
    return {f"{kind}.json": json.dumps(schema, indent=2) + "\n" for kind, schema in model_schemas().items()}


def write_schemas(directory: Path) -> list[Path]:
    """Write all schemas into a directory; returns the paths."""
    directory.mkdir(parents=True, exist_ok=True)
    paths = []
    for name, text in render_schemas().items():
        (directory / name).write_text(text, encoding="utf-8")
        paths.append(directory / name)
    return paths
