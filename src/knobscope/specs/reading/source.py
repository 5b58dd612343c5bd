"""YAML files with positions, and the problems found in them: file, line, key, what was found, what was expected."""

import os
import re
import stat
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import yaml

from knobscope.errors import UserError

#: Keys and indexes that lead to a value in a document.
Location = tuple[str | int | float, ...]

#: A spec is written by people: the largest one that is shipped has 21 kB, a record of startable values 70 kB.
_LARGEST_BYTES = 4 * 1024**2
#: No spec is nested as deep; C code that follows a deeper one could run out of its stack.
_DEEP = 50
#: The largest integers of DBMSs are those of 64 bits without a sign.
_LARGEST_INTEGER = 2**64
#: Beyond it, in either direction, sums and ratios of numbers would overflow.
LARGEST_REAL = 1e100


@dataclass(frozen=True, order=True)
class SpecProblem:
    """One thing that is wrong in a spec."""

    file: str
    line: int
    key: str
    found: str
    expected: str
    location: Location = field(default=(), compare=False)

    def __str__(self) -> str:
        """Return it in one line, in the form that editors and terminals link to."""
        text = f"{self.file}:{self.line}: {self.key or 'file'}: found {self.found}; expected {self.expected}"
        return "\\n".join(text.splitlines())  # keys may hold line breaks


class SpecErrors(UserError):  # noqa: N818 - it holds many
    """All problems of all files that were read."""

    def __init__(self, problems: Iterable[SpecProblem]) -> None:
        self.problems = sorted(set(problems))
        count = f"{len(self.problems)} problem{'s' if len(self.problems) != 1 else ''} in the specs"
        super().__init__("\n".join([count, *map(str, self.problems)]))


@dataclass(frozen=True)
class Document:
    """A YAML file: plain data, the line of every key and item, and how the file writes what is no text."""

    path: Path
    data: Any
    lines: dict[Location, int]
    inherited: dict[Location, tuple[Path, int]] = field(default_factory=dict)  # what another file says, and where
    written: dict[tuple[Location, str], str] = field(default_factory=dict)  # (where, as shown) -> as it is

    def problem(self, location: Location, found: str, expected: str) -> SpecProblem:
        """Return a problem at this location, or at the nearest enclosing one that has a line."""
        found = self.written.get((location, found), found)
        nearest = location
        while nearest and nearest not in self.lines and nearest not in self.inherited:
            nearest = nearest[:-1]
        if nearest not in self.lines and nearest in self.inherited:
            path, line = self.inherited[nearest]
            found = f"{found}, taken from {show_path(path)}:{line}"
        while nearest and nearest not in self.lines:
            nearest = nearest[:-1]
        key = _dotted(location)
        return SpecProblem(show_path(self.path), self.lines.get(nearest, 1), key, found, expected, location)


def show_path(path: Path) -> str:
    """Return the path as a person at the prompt would write it."""
    absolute = path.absolute()
    return str(absolute.relative_to(Path.cwd()) if absolute.is_relative_to(Path.cwd()) else absolute)


def show_value(value: Any) -> str:
    """Return what a file says in one short line."""
    return "keys with values" if isinstance(value, dict) else _shorten(_show(value), 80)


def _show(value: Any) -> str:
    """Return a value as YAML has it, texts in quotes."""
    if value is None or isinstance(value, bool):
        return {None: "nothing", True: "true", False: "false"}[value]
    if isinstance(value, list):
        return f"[{', '.join(map(_show, value))}]"
    if isinstance(value, dict):
        return f"{{{', '.join(f'{_show(key)}: {_show(item)}' for key, item in value.items())}}}"
    return repr(value)


class _Loader(yaml.SafeLoader):
    """Scalars of YAML 1.2's core schema, so that `off`, `1:30` and `2024-01-01` stay the text they look like.

    No aliases and no tags: a spec is read by people, no document can grow or turn in circles, and a value has the type
    that it shows.
    """

    def compose_node(self, parent: yaml.Node | None, index: Any) -> yaml.Node | None:
        """Refuse aliases and tags."""
        event = self.peek_event()  # type: ignore[no-untyped-call]
        if isinstance(event, yaml.AliasEvent):
            found = f"the alias *{_shorten(event.anchor or '')} (specs have no aliases)"
            raise yaml.composer.ComposerError(None, None, found, event.start_mark)  # type: ignore[arg-type]
        if getattr(event, "tag", None) is not None:
            shown = event.tag.replace("tag:yaml.org,2002:", "!!")
            raise yaml.composer.ComposerError(None, None, f"the tag {_shorten(shown)}", event.start_mark)
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


#: Is called with the path of each file before it is read.
_OBSERVER: ContextVar[Callable[[Path], None]] = ContextVar("observer", default=lambda _: None)


@contextmanager
def observe_reading(observer: Callable[[Path], None]) -> Iterator[None]:
    """Call the observer with the path of each file before it is read; an error that it raises prevents the reading."""
    token = _OBSERVER.set(observer)
    try:
        yield
    finally:
        _OBSERVER.reset(token)


def read_text(path: Path, expected: str = "a readable YAML file", most_bytes: int = _LARGEST_BYTES) -> str:
    """Return the text of a small file; raises SpecErrors for a missing one, for pipes, devices and huge files."""

    def fail(found: str, expected: str) -> SpecErrors:
        return SpecErrors([SpecProblem(show_path(path), 1, "", found, expected)])

    _OBSERVER.get()(path)
    try:
        return _read_text(path, most_bytes)
    except OSError as error:
        raise fail((error.strerror or str(error)).lower(), expected) from error
    except UnicodeDecodeError as error:
        raise fail("bytes that are not UTF-8", "a text file in UTF-8") from error
    except ValueError as error:
        raise fail(str(error), "a regular file of people's size") from error


def load_document(path: Path) -> Document:
    """Read a YAML file; raises SpecErrors for a missing file, a syntax error or a key given twice."""

    def fail(line: int, found: str) -> SpecErrors:
        return SpecErrors([SpecProblem(show_path(path), line, "", found, "YAML that can be read")])

    text = read_text(path)
    try:
        return _parse(path, text)
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise fail(mark.line + 1 if mark else 1, str(error.problem or error.context)) from error
    except yaml.reader.ReaderError as error:
        raise fail(text[: error.position].count("\n") + 1, f"the character U+{error.character:04X}") from error
    except (RecursionError, ValueError, OverflowError) as error:  # nested too deep; "\\UFFFFFFFF"
        raise fail(1, f"a document that cannot be read ({error})") from error


def _read_text(path: Path, most_bytes: int) -> str:
    """Return the text of a regular file; opening does not wait for the other end of a pipe.

    ValueError: it is something else, or larger than any spec; UnicodeDecodeError: it is no UTF-8.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    with os.fdopen(descriptor, "rb") as file:
        if not stat.S_ISREG(os.fstat(descriptor).st_mode):
            raise ValueError("something that is no regular file")
        content = file.read(most_bytes + 1)
    if len(content) > most_bytes:
        raise ValueError(f"more than {most_bytes // 1024**2} MiB")
    return content.decode("utf-8").replace("\r\n", "\n")


#: The same in C, ten times as fast, where PyYAML has libyaml. Its words about mistakes are not the same ones.
_FastLoader: type[Any] | None = None
if yaml.__with_libyaml__:
    _FastLoader = type("_FastLoader", (yaml.CSafeLoader,), {"yaml_implicit_resolvers": _Loader.yaml_implicit_resolvers})


@lru_cache(maxsize=64)
def _read(text: str) -> tuple[Document, list[SpecProblem]]:
    """Return a document, which nobody changes, and its problems; neither names a file yet.

    A spec that others extend or name is read again and again.
    """
    fast = _FastLoader if _FastLoader is not None and _is_plain(text, _FastLoader) else _Loader
    loader, node = _Loader(""), fast(text).get_single_node()
    document, problems = Document(Path(), None, {(): 1}), list[SpecProblem]()
    if node is None:
        return document, problems
    _collect_lines(loader, node, (), document, problems)
    return (document if problems else replace(document, data=loader.construct_document(node))), problems


def _is_plain(text: str, loader: type[Any]) -> bool:
    """Whether a text is YAML without aliases and tags, and not nested deep: what is not, `_Loader` looks at."""
    depth = 0
    try:
        for event in yaml.parse(text, loader):
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > _DEEP or isinstance(event, yaml.AliasEvent) or getattr(event, "tag", None) is not None:
                return False
    except (yaml.YAMLError, ValueError):
        return False
    return True


def _parse(path: Path, text: str) -> Document:
    document, problems = _read(text)
    if problems:
        raise SpecErrors(replace(problem, file=show_path(path)) for problem in problems)
    return replace(document, path=path)


def _collect_lines(
    loader: _Loader,
    node: yaml.Node,
    location: Location,
    document: Document,
    problems: list[SpecProblem],
) -> None:
    """Fill `lines` and `written` of a document.

    Report keys that are given twice or are no scalars, and scalars that no spec can mean.
    """
    lines = document.lines

    def report(at: yaml.Node, where: Location, found: str, expected: str) -> None:
        problems.append(SpecProblem("", at.start_mark.line + 1, _dotted(where), found, expected))

    if isinstance(node, yaml.MappingNode):
        for key_node, value_node in node.value:
            if not isinstance(key_node, yaml.ScalarNode):
                report(key_node, location, "a key of several parts", "a plain key")
                continue
            if wrong := _wrong_scalar(key_node):
                report(key_node, location, f"a key that is {wrong[0]}", wrong[1])
                continue
            key_location = (*location, loader.construct_object(key_node))
            if key_location in lines:
                report(key_node, key_location, "the key a second time", f"it once (line {lines[key_location]})")
            lines[key_location] = key_node.start_mark.line + 1
            _collect_lines(loader, value_node, key_location, document, problems)
    elif isinstance(node, yaml.SequenceNode):
        for index, item in enumerate(node.value):
            lines[(*location, index)] = item.start_mark.line + 1
            _collect_lines(loader, item, (*location, index), document, problems)
    elif wrong := _wrong_scalar(node):
        report(node, location, *wrong)
    elif not node.tag.endswith(":str") and (shown := show_value(loader.construct_object(node))) != node.value:
        document.written[location, shown] = str(node.value) or shown


def _wrong_scalar(node: yaml.Node) -> tuple[str, str] | None:
    """Return what no spec can mean by a scalar, and what it should be: endless numbers, unprintable text."""
    text = str(node.value)
    kind = node.tag.removeprefix("tag:yaml.org,2002:")
    if kind == "int" and abs(float(text)) > _LARGEST_INTEGER:
        return f"the number {_shorten(text)}", "an integer of 64 bits"
    if kind == "float" and (abs(float(text)) > LARGEST_REAL or 0 < abs(float(text)) < 1 / LARGEST_REAL):
        return f"the number {_shorten(text)}", f"one between {1 / LARGEST_REAL:g} and {LARGEST_REAL:g}"
    for character in "" if text.isprintable() else text:
        if unicodedata.category(character) in ("Cc", "Cs") and character not in "\n\t":
            return f"text with the character U+{ord(character):04X}", "printable text"
    return None


def _shorten(text: str, length: int = 40) -> str:
    return text if len(text) <= length else text[: length - 3] + "..."


def _dotted(location: Location) -> str:
    """Return a location as people write it."""
    words = {None: "null", True: "true", False: "false"}
    return ".".join(words[part] if part is None or isinstance(part, bool) else str(part) for part in location)
