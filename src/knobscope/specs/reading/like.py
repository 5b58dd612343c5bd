"""Devices that are defined by others: `model: NAME`, and `like: NAME` with `change`.

Both are put in before the spec is checked, so that a change is checked as the parameter that it is.
"""

from dataclasses import replace
from pathlib import Path
from typing import Any

from knobscope.specs.reading.base import check_name, suggest
from knobscope.specs.reading.source import Document, Location, SpecErrors, load_document, show_path, show_value

#: Never taken over: they say which device it is.
_OWN = ("name", "description", "like", "change", "renamed", "source")


def load_device_document(path: Path, chain: tuple[Path, ...] = ()) -> Document:
    """Read a device spec and those that it names; raises SpecErrors with the location of a wrong name."""
    document = load_document(path)
    if not isinstance(document.data, dict):
        return document
    if isinstance(document.data.get("like"), str):
        document = _take_over(document, chain)
    emulate = document.data.get("emulate")
    if isinstance(emulate, dict) and isinstance(emulate.get("model"), str):
        location = ("emulate", "model")
        base = _load_named(document, location, emulate["model"], chain)
        model, lines = _model_of(document, location, base)
        data = {**document.data, "emulate": {**emulate, "model": model}}
        document = replace(document, data=data, inherited={**document.inherited, **lines})
    return document


def _load_named(document: Document, location: Location, name: str, chain: tuple[Path, ...]) -> Document:
    try:
        file = document.path.with_name(f"{check_name(name)}.yaml")
    except ValueError as error:
        raise SpecErrors([document.problem(location, show_value(name), str(error))]) from error
    if file in (document.path, *chain):
        raise SpecErrors([document.problem(location, f"a circle: {name} is defined by itself", "another device")])
    if not file.is_file():
        have = sorted(sibling.stem for sibling in file.parent.glob("*.yaml") if sibling != document.path)
        expected = suggest(name, have) if have else f"a file {show_path(file)}"
        raise SpecErrors([document.problem(location, f"no device named {name!r}", expected)])
    return load_device_document(file, (*chain, document.path))


def _model_of(
    document: Document, location: Location, base: Document
) -> tuple[dict[str, Any], dict[Location, tuple[Path, int]]]:
    """Return the model of another device, and where its parameters stand."""
    emulate = base.data.get("emulate") if isinstance(base.data, dict) else None
    model = emulate.get("model") if isinstance(emulate, dict) else None
    if not isinstance(model, dict):
        raise SpecErrors(
            [
                document.problem(
                    location, f"{base.path.stem!r}, which has no device model", "a device with `emulate: model:`"
                )
            ]
        )
    lines = {location: (base.path, line) for location, line in base.lines.items()}
    return model, {key: value for key, value in {**base.inherited, **lines}.items() if key[:2] == ("emulate", "model")}


def _take_over(document: Document, chain: tuple[Path, ...]) -> Document:
    """Return a what-if device with all that it has from the other one, and its changes in the model."""
    own: dict[str, Any] = document.data
    base = _load_named(document, ("like",), own["like"], chain)
    model, inherited = _model_of(document, ("like",), base)
    change: dict[str, Any] = own["change"] if isinstance(own.get("change"), dict) else {}
    changed: dict[Location, int] = {("emulate", "model", key): document.lines.get(("change", key), 1) for key in change}
    base_data = {key: value for key, value in base.data.items() if key not in _OWN}
    stated = own.get("emulate")
    if stated is not None and (not isinstance(stated, dict) or "model" in stated):
        where: Location = ("emulate", "model") if isinstance(stated, dict) else ("emulate",)
        raise SpecErrors(
            [document.problem(where, "it together with `like`", "`change`, with the parameters that differ")]
        )
    own_emulate: dict[str, Any] = own["emulate"] if isinstance(own.get("emulate"), dict) else {}
    emulate = {**base_data["emulate"], **own_emulate, "model": {**model, **change}}
    lines: dict[Location, int] = {**document.lines, **changed}
    unchanged = {key: value for key, value in inherited.items() if key not in changed}
    data = {**base_data, **own, "emulate": emulate}
    return replace(document, data=data, lines=lines, inherited=unchanged)
