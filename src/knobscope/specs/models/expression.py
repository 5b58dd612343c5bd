"""The small language of `requires` and `when`: comparisons between knobs, evaluated without ever calling Python's eval.

Example: ``max_wal_size >= 2 * min_wal_size and wal_level != 'minimal'``. Allowed are names of knobs, the names in
`WORKLOAD_NAMES`, numbers, strings, ``true``/``false``, lists, ``+ - * /`` on numbers, comparisons, ``in``, ``not``,
``and``, ``or``. What is allowed means what it means in Python, except that a hyphen between letters belongs to a name,
such as ``election-timeout``: a minus has blanks around it.
"""

import ast
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from knobscope.errors import UserError
from knobscope.specs.reading.base import Value

#: Facts of the workload that an expression may use in addition to knobs.
WORKLOAD_NAMES = frozenset({"threads", "records"})

#: A text, in which hyphens stay, or a name with hyphens; Python takes them for minus, but has names with this dot.
_HYPHENATED = re.compile(r"'[^']*'|\"[^\"]*\"|[A-Za-z_]\w*(?:-[A-Za-z_]\w*)+")
_DOT = "·"
_CONSTANTS = {"true": True, "false": False}
_UNARY: dict[type[ast.unaryop], Callable[[Any], Any]] = {ast.USub: operator.neg, ast.Not: operator.not_}
_BINARY: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
_COMPARE: dict[type[ast.cmpop], Callable[[Any, Any], Any]] = {
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.In: lambda left, right: left in right,
    ast.NotIn: lambda left, right: left not in right,
}
_STRUCTURE = (ast.Constant, ast.Name, ast.List, ast.Tuple, ast.BoolOp, ast.UnaryOp, ast.BinOp, ast.Compare)
_ALLOWED = (*_STRUCTURE, ast.expr_context, ast.boolop, *_UNARY, *_BINARY, *_COMPARE)


@dataclass(frozen=True)
class Expression:
    """A parsed `requires` or `when`; raises ValueError for anything outside the language."""

    text: str

    def __post_init__(self) -> None:
        """Parse at once, so that a wrong expression is found when the spec is read."""
        for node in ast.walk(self._tree):
            if not isinstance(node, _ALLOWED):
                raise ValueError(f"an expression in the language of `requires`, which knows no {type(node).__name__}")
            if isinstance(node, ast.Constant) and not isinstance(node.value, int | float | str):
                raise ValueError(f"numbers and strings only, not {node.value!r}")

    @cached_property
    def _tree(self) -> ast.expr:
        text = _HYPHENATED.sub(
            lambda match: match[0] if match[0][0] in "'\"" else match[0].replace("-", _DOT), self.text.strip()
        )
        try:
            tree = ast.parse(text, mode="eval").body
            for node in ast.walk(tree):
                if isinstance(node, ast.Name):
                    node.id = node.id.replace(_DOT, "-")
            return tree
        except SyntaxError as error:
            raise ValueError(f"an expression that can be read ({error.msg})") from error
        except (RecursionError, MemoryError, ValueError) as error:  # too deep, or a null byte
            raise ValueError(f"an expression that can be read ({error})") from error

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of knobs and workload facts that the expression mentions."""
        identifiers = {node.id for node in ast.walk(self._tree) if isinstance(node, ast.Name)}
        return frozenset(identifiers - set(_CONSTANTS))

    def holds(self, values: Mapping[str, Value]) -> bool:
        """Whether the expression is true for these values.

        Raises KeyError for a name that has no value, UserError when the values cannot be compared or calculated with.
        """
        try:
            return bool(_evaluate(self._tree, values))
        except (TypeError, ArithmeticError) as error:
            bindings = ", ".join(f"{name}={values[name]!r}" for name in sorted(self.names & set(values)))
            raise UserError(f"`{self.text}` cannot be evaluated with {bindings}: {error}") from error


@lru_cache(maxsize=4096)
def parse_expression(text: str) -> Expression:
    """Return the expression; equal texts are parsed once, since sampling asks at every configuration."""
    return Expression(text)


def _evaluate(node: ast.expr, values: Mapping[str, Value]) -> Any:  # noqa: PLR0911 - one line per kind of node
    match node:
        case ast.Constant():
            return node.value
        case ast.Name():
            return _CONSTANTS[node.id] if node.id in _CONSTANTS else values[node.id]
        case ast.List():
            return [_evaluate(item, values) for item in node.elts]
        case ast.Tuple():
            return tuple(_evaluate(item, values) for item in node.elts)
        case ast.BoolOp():
            return _combine(node, values)
        case ast.UnaryOp():
            return _UNARY[type(node.op)](_evaluate(node.operand, values))
        case ast.BinOp():
            return _calculate(node, values)
        case ast.Compare():
            return _compare(node, values)
    raise TypeError(f"unchecked node {node!r}")


def _combine(node: ast.BoolOp, values: Mapping[str, Value]) -> Any:
    """Return the value that decides `and` or `or`, as Python does; the rest is not evaluated."""
    result: Any = None
    for part in node.values:
        result = _evaluate(part, values)
        if bool(result) is isinstance(node.op, ast.Or):
            break
    return result


def _calculate(node: ast.BinOp, values: Mapping[str, Value]) -> Any:
    left, right = _evaluate(node.left, values), _evaluate(node.right, values)
    for operand in (left, right):
        if not isinstance(operand, int | float):
            raise TypeError(f"{operand!r} is no number")
    return _BINARY[type(node.op)](left, right)


def _compare(node: ast.Compare, values: Mapping[str, Value]) -> bool:
    left = _evaluate(node.left, values)
    for comparison, right_node in zip(node.ops, node.comparators, strict=True):
        right = _evaluate(right_node, values)
        if not _COMPARE[type(comparison)](left, right):
            return False
        left = right
    return True
