"""From a document to a model: pydantic's complaints become problems that name line, key, found and expected."""

from dataclasses import replace
from functools import cache
from typing import Any, TypeVar

from pydantic import AliasChoices, BaseModel, ValidationError

from knobscope.specs.reading.base import Misfit, Misfits, suggest
from knobscope.specs.reading.source import Document, Location, SpecErrors, SpecProblem, show_value
from knobscope.units import propose_number

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
#: End of a key -> the unit of its number. A number under another key is a count.
_UNITS = {"_s": "s", "_ms": "ms", "_us": "us", "_bytes": "B", "_kb": "kB", "_mib": "MiB", "_gb": "GB"}


def validate_document(document: Document, model: type[Model]) -> Model:
    """Return the document as a model; raises SpecErrors with all problems of this file."""
    spec, problems = examine_document(document, model)
    if spec is None or problems:
        raise SpecErrors(problems)
    return spec


def examine_document(document: Document, model: type[Model]) -> tuple[Model | None, list[SpecProblem]]:
    """Return the document as a model and all problems of this file.

    When each key is right and only some do not fit together, there is a model in addition to the problems: what it says
    about other files can be checked all the same.
    """
    if not isinstance(document.data, dict):
        found = show_value(document.data)
        return None, [document.problem((), found, f"keys of a {model.__name__.lower()} spec")]
    try:
        return model.model_validate(document.data, by_alias=True), []
    except ValidationError as error:
        details = _without_other_branches(document.data, error.errors())
        problems = [problem for detail in details for problem in _translate_all(document, model, detail)]
        only = error.errors()[0].get("ctx", {}).get("error") if error.error_count() == 1 else None
        whole = only.model if isinstance(only, Misfits) and isinstance(only.model, model) else None
        return whole, _merge_alternatives(document, problems)


def list_renamed_keys(document: Document, model: type[BaseModel]) -> list[str]:
    """Return what to write instead of each key of a document that has another name now."""
    names = [
        alias.choices
        for field in model.model_fields.values()
        if isinstance(alias := field.validation_alias, AliasChoices)
    ]
    pairs = [(old, new) for new, *olds in names for old in olds if old in document.data]
    return [f"key {old} is now called {new}: write {new}" for old, new in pairs]


def _without_other_branches(data: Any, details: list[Any]) -> list[Any]:
    """Drop complaints about the type of a list or mapping in which something deeper is wrong.

    They come from the branches of a union that are not meant: a list is no `true`, whatever is in it.
    """
    written = [_written_location(detail["loc"], data, keep_last=False) for detail in details]
    return [
        detail
        for detail, location in zip(details, written, strict=True)
        if not (
            detail["type"].endswith("_type")
            and any(len(deeper) > len(location) and deeper[: len(location)] == location for deeper in written)
        )
    ]


def _translate_all(document: Document, model: type[BaseModel], detail: Any) -> list[SpecProblem]:
    """Return the problems behind an entry of pydantic's error: several where values do not fit together."""
    reason = detail.get("ctx", {}).get("error")
    misfits = reason.misfits if isinstance(reason, Misfits) else [reason] if isinstance(reason, Misfit) else []
    location = _written_location(detail["loc"], document.data, keep_last=False)
    fitting = [document.problem((*location, *misfit.location), misfit.found, misfit.expected) for misfit in misfits]
    return fitting or [_translate(document, model, detail)]


def _translate(document: Document, model: type[BaseModel], detail: Any) -> SpecProblem:
    kind, value = detail["type"], detail["input"]
    location = _written_location(detail["loc"], document.data, keep_last=kind == "missing")
    if kind == "extra_forbidden":
        return document.problem(location, "an unknown key", suggest(location[-1], _keys_at(model, location[:-1])))
    if kind == "missing":
        return document.problem(location, "nothing", f"this key, which is required{_choices_at(model, location)}")
    if "[key]" in detail["loc"] or kind == "invalid_key":
        return document.problem(
            location, f"the key {'null' if value is None else show_value(value)}", _expectation(kind, detail)
        )
    return document.problem(location, show_value(value), _expectation(kind, detail))


def _expectation(kind: str, detail: Any) -> str:
    context = detail.get("ctx", {})
    if kind in ("too_short", "too_long"):
        length = context.get("min_length", context.get("max_length"))
        return f"{'at least' if kind == 'too_short' else 'at most'} {length} item{'s' if length != 1 else ''}"
    if kind == "string_pattern_mismatch":
        return _PATTERNS.get(context["pattern"], f"text of the form {context['pattern']}")
    if kind == "invalid_key":
        return "a name"
    if kind == "list_type" and isinstance(detail["input"], str) and "\n" in detail["input"]:
        return f"{_EXPECTED[kind]} with an item for each line: `- {detail['input'].splitlines()[0]}` ..."
    if kind in ("dict_type", "model_type") and isinstance(detail["input"], list) and detail["input"]:
        return f"{_EXPECTED[kind]}: `{detail['input'][0]}:` instead of `- {detail['input'][0]}`"
    message = str(detail["msg"]).removeprefix("Value error, ").removeprefix("Input should be ")
    quoted = f', here in quotes: "{show_value(detail["input"])}"' if isinstance(detail["input"], bool) else ""
    return _EXPECTED.get(kind, "true" if message == "True" else message) + (quoted if kind == "string_type" else "")


def explain_first(error: ValidationError) -> str:
    """Return what pydantic, or a model of ours, expected where it complains first."""
    detail = error.errors()[0]
    reason = detail.get("ctx", {}).get("error")
    if isinstance(reason, Misfits):
        return reason.misfits[0].expected
    expected = _expectation(detail["type"], detail)
    return expected + _hint(expected, detail["input"], *_unit_of(detail["loc"]))


def _merge_alternatives(document: Document, problems: list[SpecProblem]) -> list[SpecProblem]:
    """Join what the branches of a union say about one value: several complaints, one mistake."""
    merged: dict[tuple[str, int, str, str], list[SpecProblem]] = {}
    for problem in problems:
        merged.setdefault((problem.file, problem.line, problem.key, problem.found), []).append(problem)
    return [
        _propose(
            document, replace(group[0], expected=" or ".join(dict.fromkeys(problem.expected for problem in group)))
        )
        for group in merged.values()
    ]


def _propose(document: Document, problem: SpecProblem) -> SpecProblem:
    """Return a problem; where a text with a unit was found instead of a number, with the number."""
    nodes: list[Any] = [document.data]
    for part in problem.location:
        if not _has(nodes[-1], part):
            return problem
        nodes.append(nodes[-1][part])
    unit, kilo = _unit_of(problem.location)
    if problem.location[:1] == ("knobs",):  # DBMSs take 1M for 1048576, whatever the number counts
        units = [node["unit"] for node in nodes[2:] if isinstance(node, dict) and isinstance(node.get("unit"), str)]
        unit, kilo = next(iter(units), None), 1024
    return replace(problem, expected=problem.expected + _hint(problem.expected, nodes[-1], unit, kilo))


def _unit_of(location: Location) -> tuple[str | None, int]:
    """Return the unit of the number under a key, and what a k multiplies by."""
    key = str(next((part for part in reversed(location) if isinstance(part, str)), ""))
    unit = next((unit for end, unit in _UNITS.items() if key.endswith(end)), None)
    return unit, 1000 if unit is None else 1024


def _hint(expected: str, value: object, unit: str | None, kilo: int) -> str:
    """Return what to write instead of a value, where it was the number of a unit that was expected."""
    whole, real = _EXPECTED["int_type"], _EXPECTED["float_type"]
    if expected.rsplit(" or ", maxsplit=1)[-1] not in (whole, real):
        return ""
    return propose_number(value, unit, kilo=kilo, is_whole=expected == whole)


def _written_location(location: Location, data: Any, *, keep_last: bool) -> Location:
    """Return the parts of a location that stand in the file; pydantic adds names of branches and validators."""
    parts, node = [], data
    for index, part in enumerate(location):
        if _has(node, part):
            # pydantic says 1 for the key `true`
            parts.append(next(key for key in node if key == part) if isinstance(node, dict) else part)
            node = node[part]
        elif keep_last and index == len(location) - 1:
            parts.append(part)
    return tuple(parts)


def _has(data: Any, part: str | float) -> bool:
    if isinstance(data, list):
        return isinstance(part, int) and part < len(data)
    return isinstance(data, dict) and part in data


def _keys_at(model: type[BaseModel], location: Location) -> list[str]:
    """Return the keys that the (sub)model at a location knows."""
    return sorted(_node_at(model, location).get("properties", {}))


def _choices_at(model: type[BaseModel], location: Location) -> str:
    """Return the words that a key may be, to follow what is expected; nothing for any other key."""
    choices = [str(choice) for choice in _node_at(model, location).get("enum", [])]
    return f": {', '.join(choices[:-1])} or {choices[-1]}" if choices else ""


def _node_at(model: type[BaseModel], location: Location) -> dict[str, Any]:
    schema = node = _schema_of(model)
    for part in location:
        node = _enter(_resolve(node, schema), part)
    return _resolve(node, schema)


@cache  # to make one takes as long as all else that is done about a problem
def _schema_of(model: type[BaseModel]) -> dict[str, Any]:
    return model.model_json_schema(by_alias=True)


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
    if "oneOf" in node:  # kinds told apart by a key: the keys of all of them
        kinds = [_resolve(kind, schema).get("properties", {}) for kind in node["oneOf"]]
        return {"properties": {key: value for kind in kinds for key, value in kind.items()}}
    branches = [branch for branch in node.get("anyOf", []) if branch.get("type") != "null"]
    return _resolve(branches[0], schema) if branches else node
