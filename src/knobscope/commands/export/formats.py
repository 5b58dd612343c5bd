"""A search space as Optuna, SMAC (ConfigSpace) and MLOS read it; each function returns what goes into the JSON file."""

from collections.abc import Callable
from typing import Any

from knobscope.commands.export.conditions import ALWAYS, Condition, activate, join
from knobscope.commands.export.forbidden import forbid
from knobscope.specs import Value
from knobscope.stages.plan.search_space import Parameter, SearchSpace
from knobscope.stages.tune.optuna_space import IN_RANGE, distributions, load_optuna, special_name

__all__ = ["FORMATS", "to_mlos", "to_optuna", "to_smac"]

Json = dict[str, Any]


def to_optuna(space: SearchSpace) -> Json:
    """Return distributions in the JSON of `optuna.distributions.distribution_to_json`, and what they cannot hold.

    `special` lists the numbers that a parameter KNOB.special may choose instead of the range of KNOB; `requires` is for
    the objective to check. UserError: Optuna is not installed.
    """
    to_json = load_optuna().distributions.distribution_to_json
    return {
        **_about(space),
        "distributions": {name: to_json(one) for name, one in distributions(space).items()},
        "special": {one.name: list(one.special) for one in space.parameters if one.special},
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
    for one in space.parameters:
        counts = activate(space, one.name)
        said = {"requires": one.name not in constraints or constraints[one.name][1], "when": counts is not None}
        meta: Json = {"unit": one.knob.unit, "mechanism": one.knob.mechanism, "source": one.knob.source}
        meta |= {key: text for key in said if (text := getattr(one.knob, key)) is not None}
        if not all(said.values()):
            meta["not_expressed"] = [key for key, is_said in said.items() if not is_said]
            counts = counts or ALWAYS
        parameters.append({**_smac_parameter(one), "meta": meta})
        if one.special:
            choice = special_name(one)
            names = [IN_RANGE, *map(str, one.special)]
            start = str(one.default) if one.default in one.special else IN_RANGE
            parameters.append(_smac_choice(choice, names, start))
            conditions += _of_child(choice, counts)
            counts = join("AND", [counts, {"type": "EQ", "parent": choice, "value": IN_RANGE}])
        conditions += _of_child(one.name, counts)
    return {
        "name": str(space.case),
        "hyperparameters": parameters,
        "conditions": conditions,
        "forbiddens": [clause for clauses, _ in constraints.values() for clause in clauses],
        "python_module_version": "1.2.0",
        "format_version": 0.4,
        "knobscope": _about(space),
    }


def _of_child(child: str, condition: Condition | None) -> list[Json]:
    """Return a condition with the parameter that it is about, in all of its parts; none for what always holds."""
    if condition is None or condition == ALWAYS:
        return []
    parts = [part for one in condition.get("conditions", ()) for part in _of_child(child, one)]
    return [{**condition, "child": child, **({"conditions": parts} if parts else {})}]


def _smac_parameter(one: Parameter) -> Json:
    if not one.is_number:
        return _smac_choice(one.name, list(one.choices), one.default)
    low, high = one.bounds
    kind = "uniform_int" if one.is_integer else "uniform_float"
    is_log = one.knob.scale == "log"
    return {"type": kind, "name": one.name, "lower": low, "upper": high, "default_value": one.start, "log": is_log}


def _smac_choice(name: str, choices: list[Any], default: Value) -> Json:
    return {"type": "categorical", "name": name, "choices": choices, "weights": None, "default_value": default}


def to_mlos(space: SearchSpace) -> Json:
    """Return one group of tunable parameters as mlos_bench reads it (tunable-params-schema.json).

    MLOS knows special values but no constraints: a `requires` stands in the parameter's `meta`.
    """
    group = {"description": f"Knobs of {space.case}, most important first", "cost": 1}
    return {space.dbms.name: {**group, "params": {one.name: _mlos_parameter(space, one) for one in space.parameters}}}


def _mlos_parameter(space: SearchSpace, one: Parameter) -> Json:
    about = {"mechanism": one.knob.mechanism, "unit": one.knob.unit, "requires": space.constraints.get(one.name)}
    meta = {key: text for key, text in about.items() if text is not None}
    described = {"description": one.knob.description or one.name, "meta": meta}
    if not one.is_number:
        values = [space.dbms.write(one.name, value) for value in one.choices]
        return {
            **described,
            "type": "categorical",
            "values": values,
            "default": space.dbms.write(one.name, one.default),
        }
    number: Json = {"type": "int" if one.is_integer else "float", "range": list(one.bounds), "default": one.default}
    if one.special:
        number["special"] = list(one.special)
    return {**described, **number, "log": one.knob.scale == "log"}


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
