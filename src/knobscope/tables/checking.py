"""Gives data from outside the process the type that it should have, once, where it comes in."""

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import TypeVar, cast, get_args, get_origin, get_type_hints, is_typeddict

from knobscope.durable_files import DamagedFileError, read_sealed
from knobscope.errors import UserError

Document = TypeVar("Document", bound=Mapping[str, object])


def check_document(kind: type[Document], content: object, expected: str) -> Document:
    """Return content of JSON as a document of this kind, a TypedDict; `expected` says in words what that is.

    Required keys must be there, and tables must be lists of rows. Columns are not looked at: rows may be many, and
    no table takes a column that it does not have. UserError: the first key that does not fit.
    """
    if misfit := _find_misfit(kind, content):
        raise UserError(f"{misfit}; expected {expected}")
    return cast(Document, content)


def read_document(path: Path, kind: type[Document]) -> Document:
    """Return a file that `write_sealed` wrote as a document of this kind; DamagedFileError: it is another one."""
    content = read_sealed(path)
    if misfit := _find_misfit(kind, content):
        raise DamagedFileError(path, misfit)
    return cast(Document, content)


def _find_misfit(kind: type, content: object) -> str | None:
    if not isinstance(content, dict):
        return "found no keys with values"
    for name, (is_required, is_table) in _keys_of(kind).items():
        if name not in content:
            if is_required:
                return f"found no {name!r}"
        elif is_table and not _is_table(content[name]):
            return f"{name!r} is no list of rows"
    return None


@cache
def _keys_of(kind: type) -> dict[str, tuple[bool, bool]]:
    """Return by key whether it is required, and whether its value is a table."""
    required = vars(kind)["__required_keys__"]
    return {
        name: (name in required, get_origin(hint) is list and is_typeddict(get_args(hint)[0]))
        for name, hint in get_type_hints(kind).items()
    }


def _is_table(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(row, dict) for row in value)
