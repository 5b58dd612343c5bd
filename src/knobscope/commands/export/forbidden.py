"""`requires` as forbidden clauses of ConfigSpace, as far as that language can say it.

ConfigSpace forbids combinations of "a is one of x, y", "a is below 3" and "a is below b". The negation of a `requires`
is brought into disjunctive normal form; each conjunction becomes a clause, or is given up.
"""

import ast
import operator
from collections.abc import Callable, Mapping
from itertools import product
from typing import Any

from knobscope.specs import Expression
from knobscope.stages.plan.search_space import Parameter, SearchSpace

Clause = dict[str, Any]
Atom = tuple[type[ast.cmpop], ast.expr, ast.expr]

_OPPOSITE: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.GtE, ast.GtE: ast.Lt, ast.Gt: ast.LtE, ast.LtE: ast.Gt,
    ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
#: Ends of the names of ConfigSpace's clauses (KNOB against a number) and relations (KNOB against KNOB).
_ORDERS: dict[type[ast.cmpop], str] = {ast.Lt: "LT", ast.LtE: "LE", ast.Gt: "GT", ast.GtE: "GE"}
_MIRRORED: dict[type[ast.cmpop], type[ast.cmpop]] = {ast.Lt: ast.Gt, ast.LtE: ast.GtE, ast.Gt: ast.Lt, ast.GtE: ast.LtE}
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
}
#: Whole numbers with more values than this are not listed one by one.
_MOST_VALUES = 1000


def forbid(space: SearchSpace, knob: str) -> tuple[list[Clause], bool]:
    """Return the clauses that rule out what the `requires` of a knob rules out, and whether they say all of it."""
    translator = _Translator({parameter.name: parameter for parameter in space.parameters})
    clauses: list[Clause] = []
    complete = True
    for conjunction in alternatives(fold(space, space.constraints[knob]), negated=True):
        new_clauses = translator.clauses(conjunction)
        clauses += new_clauses or []
        complete = complete and new_clauses is not None
    return clauses, complete


def fold(space: SearchSpace, text: str) -> ast.expr:
    """Return an expression of `requires` or `when` in which parameters are the only names."""
    parameters = {parameter.name for parameter in space.parameters}
    values = {**{name: knob.default for name, knob in space.dbms.knobs.items()}, **space.space.facts, **space.fixed}
    constants = {name: value for name, value in values.items() if name not in parameters}
    folded: ast.expr = _Folded(constants).visit(ast.parse(text.strip(), mode="eval").body)
    return folded


def alternatives(node: ast.expr, *, negated: bool) -> list[list[Atom]]:
    """Return the (negated) expression as alternatives of conjunctions of comparisons."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
        return alternatives(node.operand, negated=not negated)
    if isinstance(node, ast.BoolOp):
        parts = [alternatives(part, negated=negated) for part in node.values]
        if isinstance(node.op, ast.Or) is not negated:
            return [conjunction for part in parts for conjunction in part]
        return [[atom for conjunction in choice for atom in conjunction] for choice in product(*parts)]
    if isinstance(node, ast.Compare) and len(node.ops) == 1:
        kind = type(node.ops[0])
        return [[(_OPPOSITE[kind] if negated else kind, node.left, node.comparators[0])]]
    if isinstance(node, ast.Compare):  # a < b < c is a < b and b < c
        sides = [node.left, *node.comparators]
        links = [ast.Compare(sides[i], [op], [sides[i + 1]]) for i, op in enumerate(node.ops)]
        return alternatives(ast.BoolOp(ast.And(), list(links)), negated=negated)
    is_false = ast.Eq if negated else ast.NotEq
    return [[(is_false, node, ast.Constant(value=False))]]


class _Folded(ast.NodeTransformer):
    """Replaces names that have a value by it, and sums and products of values by their results."""

    def __init__(self, constants: Mapping[str, Any]) -> None:
        self.constants = {"true": True, "false": False, **constants}

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """Replace a name by its value."""
        return ast.Constant(self.constants[node.id]) if node.id in self.constants else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        """Replace an operation on numbers by its result."""
        self.generic_visit(node)
        match node.left, node.right:
            case ast.Constant(value=int() | float() as left), ast.Constant(value=int() | float() as right):
                return ast.Constant(_OPERATORS[type(node.op)](left, right))
        return node


class _Translator:
    """Turns conjunctions into clauses; the only names left in them are parameters."""

    def __init__(self, parameters: Mapping[str, Parameter]) -> None:
        self.parameters = parameters

    def clauses(self, conjunction: list[Atom]) -> list[Clause] | None:
        """Return the clauses of one conjunction: none when it cannot come about, None when it cannot be said."""
        parts = []
        for atom in conjunction:
            if self._names(atom):
                parts.append(self._listed(atom) or self._ordered(atom))
            elif not holds(atom, {}):
                return []
        if any(part is not None and part.get("values") == [] for part in parts):
            return []
        if None in parts:
            return None
        clauses = [part for part in parts if part is not None]
        return clauses if len(clauses) == 1 else [{"type": "AND", "clauses": clauses}]

    def _names(self, atom: Atom) -> set[str]:
        """Return the parameters in a comparison."""
        _, left, right = atom
        nodes = [*ast.walk(left), *ast.walk(right)]
        return {node.id for node in nodes if isinstance(node, ast.Name)}

    def _listed(self, atom: Atom) -> Clause | None:
        """Return the values of one parameter for which a comparison with constants holds, if they can be listed."""
        names = self._names(atom)
        values = self._all_values(next(iter(names))) if len(names) == 1 else None
        if values is None:
            return None
        (name,) = names
        wanted = [value for value in values if holds(atom, {name: value})]
        return {"type": "IN", "name": name, "values": wanted}

    def _ordered(self, atom: Atom) -> Clause | None:
        """Return the comparison of a number with another one, or with a constant."""
        kind, left, right = atom
        if kind not in _ORDERS or any(not self._is_plain_number(name) for name in self._names(atom)):
            return None
        order = _ORDERS[kind]
        match left, right:
            case ast.Name(), ast.Name():
                return {"type": f"RELATION_{order}", "left": left.id, "right": right.id}
            case ast.Constant(), ast.Name():
                return self._ordered((_MIRRORED[kind], right, left))
            case ast.Name(), ast.Constant(value=int() | float() as value):
                if any(holds((kind, ast.Constant(end), right), {}) for end in self.parameters[left.id].bounds):
                    return {"type": f"CLAUSE_{order}", "name": left.id, "value": value}
                return {"type": "IN", "name": left.id, "values": []}  # it holds nowhere in the range
        return None

    def _is_plain_number(self, name: str) -> bool:
        return self.parameters[name].is_number and not self.parameters[name].special

    def _all_values(self, name: str) -> list[Any] | None:
        parameter = self.parameters[name]
        if not parameter.is_number:
            return list(parameter.choices)
        low, high = parameter.bounds
        if parameter.special or not parameter.is_integer or high - low >= _MOST_VALUES:
            return None
        return list(range(low, high + 1))


def holds(atom: Atom, values: Mapping[str, Any]) -> bool:
    """Whether a comparison holds for values of the names in it."""
    kind, left, right = atom
    return Expression(ast.unparse(ast.Compare(left, [kind()], [right]))).holds(values)
