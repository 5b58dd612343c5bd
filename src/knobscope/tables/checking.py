"""Gives data from outside the process the type that it should have, once, where it comes in."""

from collections.abc import Mapping
from functools import cache
from typing import TypeVar, cast, get_origin, get_type_hints, is_typeddict

from knobscope.errors import UserError

__all__ = ["check_document"]

Document = TypeVar("Document", bound=Mapping[str, object])


def check_document(kind: type[Document], content: object, expected: str) -> Document:
    """Return content of JSON as a document of this kind, a TypedDict; `expected` says in words what that is.

    Required keys must be there, and tables must be lists of rows. Columns are not looked at: rows may be many, and
    no table takes a column that it does not have. UserError: the first key that does not fit.
    """
    if not isinstance(content, dict):
        raise UserError(f"found no keys with values; expected {expected}")
    for name, (is_required, shape) in _keys_of(kind).items():
        if name not in content:
            if is_required:
                raise UserError(f"found no {name!r}; expected {expected}")
        elif not _fits(content[name], shape):
            raise UserError(f"{name!r} is no {'list of rows' if shape is list else 'row'}; expected {expected}")
    return cast(Document, content)


@cache
def _keys_of(kind: type) -> dict[str, tuple[bool, type | None]]:
    """Return by key whether it is required, and whether its value is a table (list) or a row (dict)."""
    required = vars(kind)["__required_keys__"]
    return {name: (name in required, _shape_of(hint)) for name, hint in get_type_hints(kind).items()}


def _shape_of(hint: object) -> type | None:
    if is_typeddict(hint):
        return dict
    is_table = get_origin(hint) is list and is_typeddict(getattr(hint, "__args__", (None,))[0])
    return list if is_table else None


def _fits(value: object, shape: type | None) -> bool:
    if shape is None:
        return True
    return isinstance(value, shape) and (not isinstance(value, list) or all(isinstance(row, dict) for row in value))
