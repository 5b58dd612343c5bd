"""`extends`: a DBMS spec that states only what differs from another one, and remembers which file says what."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from knobscope.specs.reading.base import check_name, suggest
from knobscope.specs.reading.source import Document, Location, SpecErrors, load_document, show_path, show_value

#: Never taken over: they say which spec it is.
_OWN = ("name", "description", "extends", "without")
#: Replaced whole, because their keys exclude each other.
_WHOLE = ("readback",)


def load_extended(path: Path, chain: tuple[Path, ...] = ()) -> Document:
    """Read a DBMS spec and, below it, the one that it extends; raises SpecErrors with the origin of a wrong name."""
    document = load_document(path)
    if not isinstance(document.data, dict) or document.data.get("extends") is None:
        return document
    _check_name_of_base(document)
    base = document.path.with_name(f"{document.data['extends']}.yaml")
    if base in (document.path, *chain):
        found = f"a circle: {base.stem} extends itself in the end"
        raise SpecErrors([document.problem(("extends",), found, "a spec that stands on its own")])
    if not base.is_file():
        have = sorted(sibling.stem for sibling in base.parent.glob("*.yaml") if sibling != document.path)
        expected = suggest(base.stem, have) if have else f"a file {show_path(base)}"
        raise SpecErrors([document.problem(("extends",), f"no spec named {base.stem!r}", expected)])
    return _merge(load_extended(base, (*chain, document.path)), document)


def _check_name_of_base(document: Document) -> None:
    """Raise SpecErrors when `extends` is no name; it becomes the name of a file."""
    named = document.data["extends"]
    try:
        check_name(named if isinstance(named, str) else "")
    except ValueError as error:
        raise SpecErrors([document.problem(("extends",), show_value(named), str(error))]) from error


def _merge(base: Document, own: Document) -> Document:
    """Return both as one document."""
    if not isinstance(base.data, dict):
        return own
    merged: dict[str, Any] = {}
    replaced: list[Location] = [(key,) for key in _OWN]
    for key in [*base.data, *(key for key in own.data if key not in base.data)]:
        base_value, own_value = base.data.get(key), own.data.get(key)
        if key not in own.data:
            merged[key] = base_value
        elif (
            key not in base.data or key in _WHOLE or not isinstance(base_value, dict) or not isinstance(own_value, dict)
        ):
            merged[key] = own_value
            replaced.append((key,))
        else:
            merged[key] = _merge_entries(key, base_value, own_value, replaced)
    merged = {key: value for key, value in merged.items() if key not in _OWN or key in own.data}
    _drop_knobs(merged, own, replaced)
    return replace(own, data=merged, inherited=_surviving(base, replaced))


def _merge_entries(
    key: str, base_entries: dict[Any, Any], own_entries: dict[Any, Any], replaced: list[Location]
) -> dict[Any, Any]:
    """Merge two mappings entry by entry; a knob that states no type changes only what it states."""
    merged = dict(base_entries)
    for name, entry in own_entries.items():
        old = base_entries.get(name)
        if key == "knobs" and isinstance(old, dict) and isinstance(entry, dict) and "type" not in entry:
            merged[name] = {**old, **entry}
            replaced += [(key, name, part) for part in entry]
        else:
            merged[name] = entry
            replaced.append((key, name))
    return merged


def _drop_knobs(merged: dict[str, Any], own: Document, replaced: list[Location]) -> None:
    """Take out the knobs listed under `without`."""
    names = own.data.get("without", [])
    if not isinstance(merged.get("knobs"), dict) or not isinstance(names, list):
        return
    knobs = merged["knobs"] = dict(merged["knobs"])
    known_names = sorted(map(str, knobs))
    problems = []
    for index, name in enumerate(names):
        if not isinstance(name, str):
            continue  # the model says so
        if name in names[:index]:
            problems.append(own.problem(("without", index), f"{name!r} a second time", "each name once"))
        elif name not in knobs:
            problems.append(own.problem(("without", index), f"the unknown knob {name!r}", suggest(name, known_names)))
        else:
            del knobs[name]
            replaced.append(("knobs", name))
    if problems:
        raise SpecErrors(problems)


def _surviving(base: Document, replaced: list[Location]) -> dict[Location, tuple[Path, int]]:
    """Return the origins of the other file that still count."""
    origins = {location: (base.path, line) for location, line in base.lines.items()}
    origins = {**base.inherited, **origins}
    return {
        location: origin
        for location, origin in origins.items()
        if location and not any(location[: len(prefix)] == prefix for prefix in replaced)
    }
