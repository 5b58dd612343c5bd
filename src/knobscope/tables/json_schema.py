"""JSON Schemas of documents: of models and dataclasses by pydantic, of rows of tables from what these declare."""

from collections.abc import Mapping, Sequence
from typing import Any, NotRequired, Required, get_args, get_origin, get_type_hints, is_typeddict

from pydantic import TypeAdapter, WithJsonSchema
from pydantic.json_schema import JsonSchemaMode

from knobscope.document_part import UntitledSchema
from knobscope.tables.declaring import SqlType, notes_of

_DIALECT = "https://json-schema.org/draft/2020-12/schema"
_JSON_TYPES = {"DOUBLE": "number", "BOOLEAN": "boolean", "VARCHAR": "string", "TIMESTAMP": "string"}


def render_schema(document: Any) -> dict[str, Any]:
    """Return the JSON Schema of a type of documents: a model, a dataclass, a list of them, or a TypedDict."""
    schema = _object_schema(document) if is_typeddict(document) else _by_pydantic(document, "serialization")
    return {"$schema": _DIALECT, **schema}


def RowSchema(row: type, **others: dict[str, Any]) -> WithJsonSchema:  # noqa: N802 - stands where a class would
    """Return what tells pydantic that a dictionary is a row of a table; `others` replace the schema of columns."""
    schema = _object_schema(row)
    return WithJsonSchema({**schema, "properties": {**schema["properties"], **others}})


def _object_schema(kind: type) -> dict[str, Any]:
    """Return the schema of a TypedDict; a column of a table may always be null.

    A row of a table has its columns and no others. What else is a TypedDict, such as the profile of a watch, has more
    keys than these in the words of the kernel side, which change with it.
    """
    hints = get_type_hints(kind, include_extras=True)
    is_row = all(any(isinstance(note, SqlType) for note in notes_of(hint)) for hint in hints.values())
    required = sorted(vars(kind)["__required_keys__"])
    return {
        "type": "object",
        **({"description": " ".join(kind.__doc__.split())} if kind.__doc__ else {}),
        "properties": {name: _schema_of(hint) for name, hint in hints.items()},
        **({"required": required} if required else {}),
        **({"additionalProperties": False} if is_row else {}),
    }


def _schema_of(hint: Any) -> dict[str, Any]:
    origin, parts, notes = get_origin(hint), get_args(hint), notes_of(hint)
    if origin in (NotRequired, Required):
        return _schema_of(parts[0])
    if kinds := [note.name for note in notes if isinstance(note, SqlType)]:
        kind = _JSON_TYPES.get(kinds[0], "integer")
        return {"type": [kind, "null"], "description": next(note for note in notes if isinstance(note, str))}
    if origin in (list, Sequence):
        return {"type": "array", "items": _schema_of(parts[0])}
    if is_typeddict(hint):
        return _object_schema(hint)
    # Values of mappings may be of the type that this is a part of, so they stay open.
    return {"type": "object"} if origin in (dict, Mapping) else _by_pydantic(hint)


def _by_pydantic(kind: Any, mode: JsonSchemaMode = "validation") -> dict[str, Any]:
    adapter = TypeAdapter(kind)
    return adapter.json_schema(mode=mode, schema_generator=UntitledSchema, union_format="primitive_type_array")
