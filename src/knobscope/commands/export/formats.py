"""A search space as Optuna, SMAC (ConfigSpace) and MLOS read it; each function returns what goes into the JSON file."""

import ast
from collections.abc import Callable, Mapping
from typing import Any

from knobscope.commands.export.conditions import ALWAYS, Condition, activate, join
from knobscope.commands.export.forbidden import fold, forbid
from knobscope.specs import Value
from knobscope.specs.models.expression import parse_expression
from knobscope.stages.plan.search_space import Parameter, SearchSpace
from knobscope.stages.tune.optuna_space import IN_RANGE, distributions, load_optuna, special_name

Json = dict[str, Any]


def to_optuna(space: SearchSpace) -> Json:
    """Return distributions in the JSON of `optuna.distributions.distribution_to_json`, and what they cannot hold.

    `special` lists the numbers that a parameter KNOB.special may choose instead of the range of KNOB; `requires` is for
    the objective to check. UserError: Optuna is not installed.
    """
    to_json = load_optuna().distributions.distribution_to_json
    return {
        **_about(space),
        "distributions": {name: to_json(distribution) for name, distribution in distributions(space).items()},
        "special": {parameter.name: list(parameter.special) for parameter in space.parameters if parameter.special},
        "requires": space.constraints,
        "default": space.default,
    }


def to_smac(space: SearchSpace) -> Json:
    """Return a space that `ConfigSpace.ConfigurationSpace.from_json` reads, which is what SMAC takes.

    A number with special values is active only when KNOB.special is "range", and a knob with `when` only where that
    holds. `requires` become forbidden clauses; what ConfigSpace cannot say stands in the parameter's `meta` under
    `not_expressed`.
    """
    constraints = {knob: forbid(space, knob) for knob in space.constraints}
    parameters: list[Json] = []
    conditions: list[Json] = []
    for parameter in space.parameters:
        counts = activate(space, parameter.name)
        expressible = {
            "requires": parameter.name not in constraints or constraints[parameter.name][1],
            "when": counts is not None,
        }
        meta: Json = {
            "unit": parameter.knob.unit,
            "mechanism": parameter.knob.mechanism,
            "source": parameter.knob.source,
        }
        meta |= {key: text for key in expressible if (text := getattr(parameter.knob, key)) is not None}
        if not all(expressible.values()):
            meta["not_expressed"] = [key for key, is_expressible in expressible.items() if not is_expressible]
            counts = counts or ALWAYS
        parameters.append({**_smac_parameter(parameter), "meta": meta})
        if parameter.special:
            choice = special_name(parameter)
            names = [IN_RANGE, *map(str, parameter.special)]
            start = str(parameter.default) if parameter.default in parameter.special else IN_RANGE
            parameters.append(_smac_choice(choice, names, start))
            conditions += _of_child(choice, counts)
            counts = join("AND", [counts, {"type": "EQ", "parent": choice, "value": IN_RANGE}])
        conditions += _of_child(parameter.name, counts)
    return {
        "name": str(space.case),
        "hyperparameters": parameters,
        "conditions": conditions,
        "forbiddens": [clause for clauses, _ in constraints.values() for clause in clauses],
        "python_module_version": "1.2.0",
        "format_version": 0.4,
        "knobscope": _about(space) | {"not_expressed": _not_expressed(space, constraints)},
    }


def _not_expressed(space: SearchSpace, constraints: Mapping[str, tuple[list[Json], bool]]) -> dict[str, str]:
    """Return the `requires` of fixed knobs that the clauses do not hold; parameters have theirs in `meta`."""
    tuned = {parameter.name for parameter in space.parameters}
    return {
        knob: space.constraints[knob]
        for knob, (_, is_complete) in constraints.items()
        if knob not in tuned and not is_complete
    }


def _of_child(child: str, condition: Condition | None) -> list[Json]:
    """Return a condition with the parameter that it is about, in all of its parts; none for what always holds."""
    if condition is None or condition == ALWAYS:
        return []
    parts = [part for operand in condition.get("conditions", ()) for part in _of_child(child, operand)]
    return [{**condition, "child": child, **({"conditions": parts} if parts else {})}]


def _smac_parameter(parameter: Parameter) -> Json:
    if not parameter.is_number:
        return _smac_choice(parameter.name, list(parameter.choices), parameter.default)
    low, high = parameter.bounds
    kind = "uniform_int" if parameter.is_integer else "uniform_float"
    is_log = parameter.knob.scale == "log"
    return {
        "type": kind,
        "name": parameter.name,
        "lower": low,
        "upper": high,
        "default_value": parameter.start,
        "log": is_log,
    }


def _smac_choice(name: str, choices: list[Any], default: Value) -> Json:
    return {"type": "categorical", "name": name, "choices": choices, "weights": None, "default_value": default}


def to_mlos(space: SearchSpace) -> Json:
    """Return one group of tunable parameters as mlos_bench reads it (tunable-params-schema.json).

    MLOS knows special values but no constraints: a `requires` stands in the `meta` of the parameters that it names.
    """
    group = {"description": f"Knobs of {space.case}, most important first", "cost": 1}
    return {
        space.dbms.name: {
            **group,
            "params": {parameter.name: _mlos_parameter(space, parameter) for parameter in space.parameters},
        }
    }


def _mlos_parameter(space: SearchSpace, parameter: Parameter) -> Json:
    about = {
        "mechanism": parameter.knob.mechanism,
        "unit": parameter.knob.unit,
        "requires": _requirements_on(space, parameter.name),
    }
    meta = {key: text for key, text in about.items() if text is not None}
    described = {"description": parameter.knob.description or parameter.name, "meta": meta}
    if not parameter.is_number:
        values = [space.dbms.write(value) for value in parameter.choices]
        return {
            **described,
            "type": "categorical",
            "values": values,
            "default": space.dbms.write(parameter.default),
        }
    number: Json = {
        "type": "int" if parameter.is_integer else "float",
        "range": list(parameter.bounds),
        "default": parameter.default,
    }
    if parameter.special:
        number["special"] = list(parameter.special)
    return {**described, **number, "log": parameter.knob.scale == "log"}


def _requirements_on(space: SearchSpace, name: str) -> str | None:
    """Return the own `requires` of a parameter, and those of fixed knobs that name it, with their values."""
    tuned = {parameter.name for parameter in space.parameters}
    texts = [
        text if knob == name else f"({ast.unparse(fold(space, text))})"
        for knob, text in space.constraints.items()
        if knob == name or (knob not in tuned and name in parse_expression(text).names)
    ]
    return " and ".join(texts) or None


def _about(space: SearchSpace) -> Json:
    """Return where the space comes from, and what stays as it is while a tuner works."""
    return {
        "case": str(space.case),
        "fixed": dict(space.fixed),
        "left_out_for_durability": space.left_out,
        "values_left_out_for_durability": {knob: list(values) for knob, values in space.risky.items()},
    }


#: Tuner -> function of a search space.
FORMATS: dict[str, Callable[[SearchSpace], Json]] = {"optuna": to_optuna, "smac": to_smac, "mlos": to_mlos}
