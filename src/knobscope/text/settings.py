"""Knobs as their DBMS takes them, to be copied: `PRAGMA journal_mode=wal`, `-c shared_buffers=2048`."""

import re
from collections.abc import Iterator, Mapping
from typing import Any

import yaml

from knobscope.specs import Dbms, Value, Writing

#: Places of an instance that lines may name: what they are on a server of the reader, who has to fill them in.
_PLACES = {
    "data": "the data directory",
    "port": "the port",
    "socket": "the directory of the sockets",
    "config": "the directory of the configuration files",
}
_PLACE = re.compile(r"\{(?:(" + "|".join(_PLACES) + r")(?::url)?|path\.(\w+))\}")


def describe_settings(dbms: Dbms, configuration: Mapping[str, Value]) -> list[str]:
    """Return the lines that set knobs, as the spec writes them: arguments, statements, variables, lines of a file.

    A comment names the file, and what has to be set before data is loaded. The last ones say what the places in braces
    are on the server on which the lines are used.
    """
    lines: dict[str, list[str]] = {}
    for name in dbms.knobs:
        if name in configuration:
            place, text = _describe(dbms, name, configuration[name])
            lines.setdefault(place, []).extend(text)
    told = [line for place, texts in lines.items() for line in ([f"# {place}"] if place else []) + texts if line]
    places = dict.fromkeys(match.groups() for line in told for match in _PLACE.finditer(line))
    return told + [
        f"# {{path.{path}}}: {path} of your installation" if path else f"# {{{name}}}: {_PLACES[name]} of your server"
        for name, path in places
    ]


def describe_knob(dbms: Dbms | None, name: str) -> str:
    """Return what a knob does, by its spec; empty for what is no knob of the DBMS, or has no description."""
    return (dbms.knobs[name].description or "") if dbms is not None and name in dbms.knobs else ""


def _describe(dbms: Dbms, name: str, value: Value) -> tuple[str, list[str]]:
    """Return where a knob is set, empty where its line says that, and its lines."""
    writing = dbms.writing_of(name)
    if dbms.part_of(name) is not None or writing is None:
        return "", [f"# {name} = {value}"]
    places = [writing.file] if writing.file else ["environment variables"] if writing.variable else []
    places += ["before data is loaded"] if dbms.knobs[name].apply == "load" else []
    return ", ".join(places), list(_write(dbms, name, value, writing))


def _write(dbms: Dbms, name: str, value: Value, writing: Writing) -> Iterator[str]:
    knob = dbms.knobs[name]
    names = _Names(knob=knob.alias or name, value=dbms.write(value), unit=knob.unit or "", property="…")
    if writing.by_value is not None:
        fragment = writing.of_value(value) or []
        texts = [yaml.safe_dump(fragment, sort_keys=False).strip()] if isinstance(fragment, dict) else list(fragment)
        yield from (text.format_map(names) for text in (texts if writing.file else [" ".join(texts)]))
    elif writing.argv is not None:
        yield " ".join(writing.argv).format_map(names)
    elif (key := writing.key or writing.client or writing.variable) is not None:
        sign = ": " if writing.key is not None else "="
        yield f"{key}{sign}{writing.value}".format_map(names)
    else:
        yield (writing.sql or writing.line or "").format_map(names)


class _Place(str):
    """A place of an instance as templates have it, {data}, or what is below it: {path.jars}."""

    __slots__ = ()

    def __getattr__(self, name: str) -> "_Place":
        return _Place(f"{self[:-1]}.{name}}}")

    def __format__(self, form: str) -> str:
        return f"{self[:-1]}:{form}}}" if form else self


class _Names(dict[str, Any]):
    """What stands in templates; places of an instance stay as they are."""

    def __missing__(self, name: str) -> _Place:
        return _Place(f"{{{name}}}")
