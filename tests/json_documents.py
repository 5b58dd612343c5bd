"""Documents that commands print with `--json`, checked against the schemas of the reference."""

import json
from pathlib import Path
from typing import Any

import jsonschema

SCHEMAS = Path(__file__).parents[1] / "docs/reference/schemas"


def read_document(command: str, text: str) -> Any:
    """Return what a command printed as `--json`, which fits its schema."""
    document = json.loads(text)
    schema = json.loads((SCHEMAS / f"{command}.json").read_text())
    jsonschema.Draft202012Validator(schema).validate(document)
    return document
