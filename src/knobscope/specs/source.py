"""YAML files with positions, and the problems found in them: file, line, key, what was found, what was expected."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from knobscope.errors import UserError

__all__ = ["Document", "Location", "SpecErrors", "SpecProblem", "load_document", "show_path"]

#: Keys and positions that lead to a place in a document.
Location = tuple[str | int | float, ...]


@dataclass(frozen=True, order=True)
class SpecProblem:
    """One thing that is wrong in a spec."""

    file: str
    line: int
    key: str
    found: str
    expected: str

    def __str__(self) -> str:
        """Return it in one line, in the form that editors and terminals link to."""
        return f"{self.file}:{self.line}: {self.key or 'file'}: found {self.found}; expected {self.expected}"


class SpecErrors(UserError):  # noqa: N818 - it holds many
    """All problems of all files that were read."""

    def __init__(self, problems: Iterable[SpecProblem]) -> None:
        self.problems = sorted(set(problems))
        count = f"{len(self.problems)} problem{'s' if len(self.problems) != 1 else ''} in the specs"
        super().__init__("\n".join([count, *map(str, self.problems)]))


@dataclass(frozen=True)
class Document:
    """A YAML file: plain data, and the line of every key and item."""

    path: Path
    data: Any
    lines: dict[Location, int]
    inherited: dict[Location, tuple[Path, int]] = field(default_factory=dict)  # what another file says, and where

    def problem(self, location: Location, found: str, expected: str) -> SpecProblem:
        """Return a problem at this place, or at the nearest enclosing place that has a line."""
        place = location
        while place and place not in self.lines and place not in self.inherited:
            place = place[:-1]
        if place not in self.lines and place in self.inherited:
            path, line = self.inherited[place]
            found = f"{found}, taken from {show_path(path)}:{line}"
        while place and place not in self.lines:
            place = place[:-1]
        key = ".".join(str(part) for part in location)
        return SpecProblem(show_path(self.path), self.lines.get(place, 1), key, found, expected)


def show_path(path: Path) -> str:
    """Return the path as a person at the prompt would write it."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute)


class _Loader(yaml.SafeLoader):
    """Scalars of YAML 1.2's core schema, so that `off`, `1:30` and `2024-01-01` stay the text they look like.

    No aliases: a spec is read by people, and no document can grow or turn in circles.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases."""
        if self.check_event(yaml.AliasEvent):
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise yaml.composer.ComposerError(None, None, "an alias", mark)
        return super().compose_node(parent, index)


def _construct_integer(loader: yaml.SafeLoader, node: yaml.ScalarNode) -> int:
    return int(loader.construct_scalar(node))


_Loader.yaml_implicit_resolvers = {}
_Loader.add_constructor("tag:yaml.org,2002:int", _construct_integer)
for _tag, _pattern, _first in (
    ("bool", r"^(?:true|false)$", "tf"),
    ("int", r"^[-+]?[0-9]+$", "-+0123456789"),
    ("float", r"^[-+]?(?:\.[0-9]+|[0-9]+\.[0-9]*|[0-9]+(?=[eE]))(?:[eE][-+]?[0-9]+)?$", "-+.0123456789"),
    ("null", r"^(?:~|null|)$", ["~", "n", ""]),
):
    _Loader.add_implicit_resolver(f"tag:yaml.org,2002:{_tag}", re.compile(_pattern), list(_first))


def load_document(path: Path) -> Document:
    """Read a YAML file; raises SpecErrors for a missing file, a syntax error or a key given twice."""

    def fail(line: int, found: str, expected: str = "YAML that can be read") -> SpecErrors:
        return SpecErrors([SpecProblem(show_path(path), line, "", found, expected)])

    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise fail(1, (error.strerror or str(error)).lower(), "a readable YAML file") from error
    except UnicodeDecodeError as error:
        raise fail(1, "bytes that are not UTF-8", "a text file in UTF-8") from error
    try:
        return _parse(path, text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise fail(mark.line + 1 if mark else 1, str(error.problem or error.context)) from error
    except yaml.reader.ReaderError as error:
        raise fail(text[: error.position].count("\n") + 1, f"the character U+{error.character:04X}") from error
    except (RecursionError, ValueError) as error:  # too deep; `!!int word`
        raise fail(1, f"a document that cannot be read ({error})") from error


def _parse(path: Path, text: str) -> Document:
    loader = _Loader(text)
    node = loader.get_single_node()
    lines: dict[Location, int] = {(): 1}
    problems: list[SpecProblem] = []
    if node is not None:
        _collect_lines(loader, node, (), lines, problems, show_path(path))
    if problems:
        raise SpecErrors(problems)
    return Document(path, loader.construct_document(node) if node is not None else None, lines)


def _collect_lines(
    loader: _Loader,
    node: yaml.Node,
    place: Location,
    lines: dict[Location, int],
    problems: list[SpecProblem],
    file: str,
) -> None:
    """Fill `lines`; report keys that are given twice, or are no scalars."""
    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            line = key_node.start_mark.line + 1
            if not isinstance(key_node, yaml.ScalarNode):
                problems.append(SpecProblem(file, line, _dotted(place), "a key of several parts", "a plain key"))
                continue
            here = (*place, loader.construct_object(key_node))
            if here in lines:
                again = f"it once (line {lines[here]})"
                problems.append(SpecProblem(file, line, _dotted(here), "the key a second time", again))
            lines[here] = line
            _collect_lines(loader, value_node, here, lines, problems, file)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*place, index)] = item.start_mark.line + 1
            _collect_lines(loader, item, (*place, index), lines, problems, file)


def _dotted(place: Location) -> str:
    return ".".join(map(str, place))
