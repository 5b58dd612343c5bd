"""Placeholders in commands, statements and properties: what may stand in braces, and where."""

import re
import string
from collections.abc import Callable, Iterator, Sequence
from typing import Annotated, Any

from pydantic import AfterValidator

from knobscope.specs.reading.base import Misfit, Value, check_one_line

#: What a command, a connection or a statement may contain in braces.
PLACEHOLDERS = {
    "data": "the data directory of this run",
    "port": "a free port on 127.0.0.1",
    "port2": "another one",
    "port3": "a third one",
    "socket": "a private directory for sockets",
    "config": "a private directory that holds the files under `config_files`",
    "password": "a random password, made for this data directory (only in `connection.properties`, `environment` and "
    "`config_files`)",
    "password_file": "a private file that holds the password, on a line",
    "path.NAME": "what was found for NAME under `paths`",
    "knobs": "the knobs that are written as arguments; an argument of its own (only in `init`, `start` and the "
    "commands of a generator)",
    "knob": "name of the knob (only under `writing` and `readback`)",
    "value": "value of the knob (only under `writing`)",
    "unit": "unit of the knob, nothing when it has none (only under `writing`)",
    "property": "what the property or variable says so far: what stands under `connection.properties` or "
    "`environment`, and what other knobs added (only in `value` together with `client` or `variable`)",
    "directory": "a directory that will lie on the device of a part (only under `parts`)",
    "part": "name of the part in the study, e.g. table.stock (only under `parts`)",
    "name": "what stands behind the dot in it, e.g. stock (only under `parts`)",
    "connection": "the arguments with which this generator reaches the DBMS, from `generators` of the DBMS; an "
    "argument of its own (only in the commands of a generator, as all below)",
    "out": "a private directory of the generator, which holds its `files`",
    "records": "`records` of the workload",
    "records_per.NAME": "`records` divided by a parameter, at least 1: rows of each of several tables",
    "threads": "`threads` of the workload",
    "seconds": "how long to run, in whole seconds",
    "requests": "how many operations to run, for a generator that is bound by their number",
    "parameter.NAME": "a parameter of the workload",
}
#: For commands: everybody sees the arguments of a process, so the password is not among them.
_OF_INSTANCE = ("data", "port", "port2", "port3", "socket", "config", "password_file", "path")
_GENERATOR = (*_OF_INSTANCE, "out", "records", "records_per", "threads", "seconds", "requests", "parameter")
#: Placeholders that are paths, and the form that makes such a path part of a URL: {socket:url}.
PATH_PLACEHOLDERS, URL = ("data", "socket", "config", "password_file"), "url"
#: Placeholders with a name behind a dot.
_NAMESPACES = ("path", "parameter", "records_per")


def _allow(*allowed: str, alone: tuple[str, ...] = ()) -> Callable[[str], str]:
    """Return a check that lets these placeholders pass; those in `alone` as an argument of their own only."""

    def check(text: str) -> str:
        if text in [f"{{{name}}}" for name in alone]:
            return text
        try:
            fields = list(string.Formatter().parse(text))
        except ValueError as error:
            raise ValueError("balanced braces; {{ and }} stand for plain ones") from error
        for _, field, form, conversion in fields:
            if field is None:
                continue
            if field in alone:
                raise ValueError(f"{{{field}}} as an argument of its own")
            name, dot, member = field.partition(".")
            fits = bool(re.fullmatch(r"[a-z][a-z0-9_]*", member)) if name in _NAMESPACES else not dot
            is_formed = not form or (form == URL and name in PATH_PLACEHOLDERS)
            if name not in allowed or not fits or not is_formed or conversion:
                names = [f"{word}.NAME" if word in _NAMESPACES else word for word in (*allowed, *alone)]
                shown = ", ".join(f"{{{word}}}" for word in names)
                raise ValueError(f"some of the placeholders {shown} ({{{{ and }}}} stand for plain braces)")
        return text

    return check


def _check_item(text: str) -> str:
    if "\n" in text:
        raise ValueError("an item of the list for each line")
    return text


def _check_place(text: str) -> str:
    place, *names = text.split("/")
    if place not in ("{data}", "{socket}") or not names or not {"", ".."}.isdisjoint(names):
        raise ValueError("files below {data} or {socket}")
    return text


def find_wrong_texts(content: Any, location: tuple[Value, ...] = ()) -> Iterator[Misfit]:
    """Yield texts of nested data that hold other placeholders than a configuration file may."""
    if isinstance(content, str):
        try:
            _allow(*_OF_INSTANCE, "password")(content)
        except ValueError as error:
            yield Misfit(location, repr(content), str(error))
    items = content.items() if isinstance(content, dict) else enumerate(content) if isinstance(content, list) else ()
    for key, item in items:
        yield from find_wrong_texts(item, (*location, key))


def names_in(texts: Sequence[str], namespace: str) -> Iterator[tuple[int, str]]:
    """Yield NAME for every placeholder {namespace.NAME} in texts that were checked, with the index of its text."""
    for index, text in enumerate(texts):
        for _, field, _, _ in string.Formatter().parse(text):
            if field is not None and field.startswith(f"{namespace}."):
                yield index, field.partition(".")[2]


#: An argument of a command.
Template = Annotated[str, AfterValidator(_allow(*_OF_INSTANCE))]
#: An argument of a command that tells the version: it runs where there is no instance.
VersionArgument = Annotated[str, AfterValidator(_allow("path"))]
#: Files that a server writes into directories of its own.
OwnFiles = Annotated[
    str, AfterValidator(_allow("data", "socket")), AfterValidator(_check_place), AfterValidator(check_one_line)
]
#: A property of a client, which travels in a private file.
TemplateOrPassword = Annotated[str, AfterValidator(_allow(*_OF_INSTANCE, "password"))]
#: A line of a private file.
FileLine = Annotated[str, AfterValidator(_check_item), AfterValidator(_allow(*_OF_INSTANCE, "password"))]
#: An argument of a command that also receives the knobs.
TemplateOrKnobs = Annotated[str, AfterValidator(_allow(*_OF_INSTANCE, alone=("knobs",)))]
#: How one knob is written.
WrittenKnob = Annotated[
    str, AfterValidator(_allow("knob", "value", "unit", *_OF_INSTANCE)), AfterValidator(check_one_line)
]
#: What a property or key is set to for one knob.
WrittenValue = Annotated[
    str, AfterValidator(_allow("knob", "value", "unit", "property", *_OF_INSTANCE)), AfterValidator(check_one_line)
]
#: A statement that gives a part of the data a directory of its own.
PartStatement = Annotated[str, AfterValidator(_allow("directory", "part", "name")), AfterValidator(check_one_line)]
#: A statement that sets a knob for a part of the data.
PartKnob = Annotated[str, AfterValidator(_allow("part", "name", "knob", "value")), AfterValidator(check_one_line)]
#: How one knob is asked for.
AskedKnob = Annotated[str, AfterValidator(_allow("knob"))]
#: An argument of a generator's command.
GeneratorArgument = Annotated[str, AfterValidator(_allow(*_GENERATOR, alone=("knobs", "connection")))]
#: A line of a file that a generator reads.
GeneratorFileLine = Annotated[str, AfterValidator(_check_item), AfterValidator(_allow(*_GENERATOR))]
