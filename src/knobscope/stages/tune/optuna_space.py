"""A search space in Optuna's terms: distributions, a suggested configuration, and a configuration as parameters.

A number with special values (0 = off) is two parameters: `KNOB.special` chooses the range or one of the special values,
and `KNOB` exists only when the range was chosen.
"""

import json
from typing import TYPE_CHECKING, Any

from knobscope.errors import UserError
from knobscope.specs import Value
from knobscope.stages.plan.search_space import Configuration, Parameter, SearchSpace

if TYPE_CHECKING:
    import optuna

#: The choice of `KNOB.special` that stands for a number of the range.
IN_RANGE = "range"


def load_optuna() -> Any:
    """Return the module optuna. UserError when it is not installed."""
    try:
        import optuna
    except ImportError as error:
        raise UserError(
            "Optuna is not installed; this needs it: `make setup` in the checkout, or pip install optuna"
        ) from error
    return optuna


def special_name(parameter: Parameter) -> str:
    """Return the name of the parameter that chooses between range and special values."""
    return f"{parameter.name}.special"


def distributions(space: SearchSpace) -> "dict[str, optuna.distributions.BaseDistribution]":
    """Return Optuna's distribution of every parameter, conditional ones included."""
    by_name: dict[str, optuna.distributions.BaseDistribution] = {}
    for parameter in space.parameters:
        if parameter.special:
            by_name[special_name(parameter)] = _special_distribution(parameter)
        by_name[parameter.name] = _distribution(parameter)
    return by_name


def suggest(trial: "optuna.trial.BaseTrial", space: SearchSpace) -> Configuration:
    """Return the configuration that a trial suggests; it may break a `requires`."""
    chosen: dict[str, Value] = {}
    for parameter in space.parameters:
        special = IN_RANGE
        if parameter.special:
            names = [IN_RANGE, *map(json.dumps, parameter.special)]
            special = trial.suggest_categorical(special_name(parameter), names)
        chosen[parameter.name] = json.loads(special) if special != IN_RANGE else _suggest_one(trial, parameter)
    return space.complete(chosen)


def parameters_of(space: SearchSpace, configuration: Configuration) -> dict[str, Any]:
    """Return a configuration as Optuna's parameters; what `suggest` would have asked for."""
    parameters: dict[str, Any] = {}
    for parameter in space.parameters:
        value = configuration[parameter.name]
        if parameter.special:
            parameters[special_name(parameter)] = json.dumps(value) if value in parameter.special else IN_RANGE
        if value not in parameter.special:
            parameters[parameter.name] = value
    return parameters


def _special_distribution(parameter: Parameter) -> "optuna.distributions.BaseDistribution":
    return load_optuna().distributions.CategoricalDistribution([IN_RANGE, *map(json.dumps, parameter.special)])  # type: ignore[no-any-return]


def _distribution(parameter: Parameter) -> "optuna.distributions.BaseDistribution":
    kinds = load_optuna().distributions
    if not parameter.is_number:
        return kinds.CategoricalDistribution(list(parameter.choices))  # type: ignore[no-any-return]
    kind = kinds.IntDistribution if parameter.is_integer else kinds.FloatDistribution
    low, high = parameter.bounds
    return kind(low, high, log=parameter.knob.scale == "log")  # type: ignore[no-any-return]


def _suggest_one(trial: "optuna.trial.BaseTrial", parameter: Parameter) -> Value:
    if not parameter.is_number:
        choice: Value = trial.suggest_categorical(parameter.name, list(parameter.choices))  # type: ignore[assignment]
        return choice
    low, high = parameter.bounds
    is_log = parameter.knob.scale == "log"
    if parameter.is_integer:
        return trial.suggest_int(parameter.name, low, high, log=is_log)
    return trial.suggest_float(parameter.name, low, high, log=is_log)
