"""`when` as conditions of ConfigSpace, as far as that language can say it: what does not count need not be tried.

A condition says "a is one of x, y", "a is above 3" or "a is below 3"; conditions join by and and or. The `when` is
brought into disjunctive normal form. Where it cannot be said the knob stays free, which costs a tuner trials and makes
nothing wrong.
"""

import ast
from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.commands.export.forbidden import Atom, alternatives, fold, holds
from knobscope.stages.plan.search_space import Parameter, SearchSpace
from knobscope.stages.tune.optuna_space import IN_RANGE, special_name

Condition = dict[str, Any]
#: What holds always, and never; ConfigSpace has no conditions for these.
ALWAYS: Condition = {"type": "always"}
NEVER: Condition = {"type": "never"}
_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
#: Whole numbers with more values than this are not listed one by one.
_MOST_VALUES = 1000


def activate(space: SearchSpace, knob: str) -> Condition | None:
    """Return the condition under which a knob counts, ALWAYS included; None where it cannot be said, or never holds."""
    text = space.dbms.knobs[knob].when
    if text is None:
        return ALWAYS
    parameters = {parameter.name: parameter for parameter in space.parameters}
    conjunctions = alternatives(fold(space, text), negated=False)
    condition = join(
        "OR", [join("AND", [_ask(parameters, atom) for atom in conjunction]) for conjunction in conjunctions]
    )
    return None if condition == NEVER else condition


def join(kind: str, parts: Sequence[Condition | None]) -> Condition | None:
    """Join conditions by `AND` or `OR`; None where one cannot be said and the others do not decide."""
    decides, adds_nothing = (ALWAYS, NEVER) if kind == "OR" else (NEVER, ALWAYS)
    remaining = [part for part in parts if part != adds_nothing]
    if decides in remaining or not remaining:
        return decides if remaining else adds_nothing
    if None in remaining:
        return None
    return remaining[0] if len(remaining) == 1 else {"type": kind, "conditions": remaining}


def _ask(parameters: Mapping[str, Parameter], atom: Atom) -> Condition | None:
    """Return one comparison as a condition on the parameter in it."""
    names = sorted({node.id for side in atom[1:] for node in ast.walk(side) if isinstance(node, ast.Name)})
    if not names:
        return ALWAYS if holds(atom, {}) else NEVER
    if len(names) > 1:
        return None
    parameter = parameters[names[0]]
    if not parameter.is_number:
        return _ask_values(parameter, parameter.choices, atom)
    if parameter.special:
        return _ask_special(parameter, atom)
    low, high = parameter.bounds
    if parameter.is_integer and high - low < _MOST_VALUES:
        return _ask_values(parameter, range(low, high + 1), atom)
    return _ask_order(parameter, atom)


def _ask_values(parameter: Parameter, values: Sequence[Any], atom: Atom) -> Condition:
    return _among(parameter.name, [value for value in values if holds(atom, {parameter.name: value})], len(values))


def _among(parent: str, values: list[Any], of: int) -> Condition:
    if len(values) in (0, of):
        return ALWAYS if values else NEVER
    wanted = {"type": "EQ", "value": values[0]} if len(values) == 1 else {"type": "IN", "values": values}
    return {**wanted, "parent": parent}


def _in_range(parameter: Parameter, atom: Atom) -> bool | None:
    """Whether a comparison holds in all of a number's range, or in none of it; None where it depends on the number."""
    low, high = (holds(atom, {parameter.name: end}) for end in parameter.bounds)
    return low if low == high and atom[0] in _ORDERS else None


def _ask_special(parameter: Parameter, atom: Atom) -> Condition | None:
    """Return a condition on the choice between a number's range and its special values."""
    whole = _in_range(parameter, atom)
    if whole is None:
        return None
    special = [str(value) for value in parameter.special if holds(atom, {parameter.name: value})]
    return _among(special_name(parameter), [*([IN_RANGE] if whole else []), *special], 1 + len(parameter.special))


def _ask_order(parameter: Parameter, atom: Atom) -> Condition | None:
    """Return a condition that a number is above or below another; "at least" is above the whole number before."""
    whole = _in_range(parameter, atom)
    if whole is not None:
        return ALWAYS if whole else NEVER
    match atom:
        case order, ast.Name(), ast.Constant(value=int() as value) if order in _ORDERS and parameter.is_integer:
            bound = value + {ast.GtE: -1, ast.LtE: 1}.get(order, 0)
            return {"type": "GT" if order in (ast.Gt, ast.GtE) else "LT", "parent": parameter.name, "value": bound}
        case order, ast.Name(), ast.Constant(value=int() | float() as value) if order in (ast.Gt, ast.Lt):
            return {"type": "GT" if order is ast.Gt else "LT", "parent": parameter.name, "value": value}
    return None
