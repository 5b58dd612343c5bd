"""From a document to a model: pydantic's complaints become problems that name line, key, found and expected."""

from typing import Any, TypeVar

from pydantic import BaseModel, ValidationError

from knobscope.specs.base import Misfit, suggest
from knobscope.specs.source import Document, Location, SpecErrors, SpecProblem

__all__ = ["validate_document"]

Model = TypeVar("Model", bound=BaseModel)

#: Plain words for what pydantic expected, by the type of its error.
_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "keys with values below it",
    "float_type": "a number",
    "int_type": "an integer",
    "list_type": "a list",
    "model_type": "keys with values below it",
    "string_type": "text",
}
_PATTERNS = {r"^https?://": "an address that begins with https:// or http://"}


def validate_document(document: Document, model: type[Model]) -> Model:
    """Return the document as a model; raises SpecErrors with all problems of this file."""
    if not isinstance(document.data, dict):
        found = "nothing" if document.data is None else _show(document.data)
        raise SpecErrors([document.problem((), found, f"keys of a {model.__name__.lower()} spec")])
    try:
        return model.model_validate(document.data, by_alias=True)
    except ValidationError as error:
        problems = [_translate(document, model, detail) for detail in error.errors()]
        raise SpecErrors(_merge_alternatives(problems)) from error


def _translate(document: Document, model: type[BaseModel], detail: Any) -> SpecProblem:
    kind, given, context = detail["type"], detail["input"], detail.get("ctx", {})
    location = _written_location(detail["loc"], document.data, keep_last=kind == "missing")
    misfit = context.get("error")
    if isinstance(misfit, Misfit):
        return document.problem((*location, *misfit.place), misfit.found, misfit.expected)
    if kind == "extra_forbidden":
        return document.problem(location, "an unknown key", suggest(location[-1], _keys_at(model, location[:-1])))
    if kind == "missing":
        return document.problem(location, "nothing", "this key, which is required")
    if "[key]" in detail["loc"] or kind == "invalid_key":
        return document.problem(location, f"the key {given!r}", _expectation(kind, detail))
    return document.problem(location, _show(given), _expectation(kind, detail))


def _expectation(kind: str, detail: Any) -> str:
    context = detail.get("ctx", {})
    if kind in ("too_short", "too_long"):
        length = context.get("min_length", context.get("max_length"))
        return f"{'at least' if kind == 'too_short' else 'at most'} {length} item{'s' if length != 1 else ''}"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"text of the form {context['pattern']}")
    if kind == "invalid_key":
        return "a name"
    message = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    return _EXPECTED.get(kind, message)


def _merge_alternatives(problems: list[SpecProblem]) -> list[SpecProblem]:
    """Join what the branches of a union say about one value: several complaints, one mistake."""
    merged: dict[tuple[str, int, str, str], list[str]] = {}
    for problem in problems:
        expected = merged.setdefault((problem.file, problem.line, problem.key, problem.found), [])
        if problem.expected not in expected:
            expected.append(problem.expected)
    return [SpecProblem(*place, " or ".join(expected)) for place, expected in merged.items()]


def _show(value: Any) -> str:
    if value is None:
        return "nothing"
    if isinstance(value, dict):
        return "keys with values"
    text = repr(value)
    return text if len(text) <= 80 else text[:77] + "..."


def _written_location(location: Location, data: Any, *, keep_last: bool) -> Location:
    """Return the parts of a location that stand in the file; pydantic adds names of branches and validators."""
    parts, here = [], data
    for index, part in enumerate(location):
        if _has(here, part):
            here = here[part]
            parts.append(part)
        elif keep_last and index == len(location) - 1:
            parts.append(part)
    return tuple(parts)


def _has(data: Any, part: str | float) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _keys_at(model: type[BaseModel], location: Location) -> list[str]:
    """Return the keys that the (sub)model at a location knows."""
    schema = model.model_json_schema(by_alias=True)
    node: dict[str, Any] = schema
    for part in location:
        node = _enter(_resolve(node, schema), part)
    return sorted(_resolve(node, schema).get("properties", {}))


def _enter(node: dict[str, Any], part: str | float) -> dict[str, Any]:
    if isinstance(part, int):
        return dict(node.get("items", {}))
    own: dict[str, Any] = node.get("properties", {})
    for free in (*node.get("patternProperties", {}).values(), node.get("additionalProperties")):
        if isinstance(free, dict):
            return dict(own.get(str(part), free))
    return dict(own.get(str(part), {}))


def _resolve(node: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    if "$ref" in node:
        return _resolve(schema["$defs"][node["$ref"].rsplit("/", 1)[1]], schema)
    branches = [branch for branch in node.get("anyOf", []) if branch.get("type") != "null"]
    return _resolve(branches[0], schema) if branches else node
