"""What a tuner may try: knobs as parameters with ranges, scales, special values and constraints.

A parameter covers the part of a knob that its study looked at: nothing is known of the rest. Values that risk committed
data are left out unless they are requested, since a tuner takes every risk that pays; a knob of which only the default
remains stays at it.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from knobscope.specs import Case, Dbms, Knob, KnobChoice, StudySpecs, Value, is_factor
from knobscope.stages.plan import DesignSpace, case_space

Configuration = dict[str, Value]
#: A whole number with more values than this is not listed value by value.
_MOST_LISTED = 100


@dataclass(frozen=True)
class Parameter:
    """One knob that a tuner sets: a number between `low` and `high` or one of `special`, or one of `choices`."""

    name: str
    knob: Knob
    default: Value
    low: int | float | None = None
    high: int | float | None = None
    special: tuple[Value, ...] = ()
    choices: tuple[Value, ...] = ()

    @property
    def is_number(self) -> bool:
        """Whether it is a number rather than a choice."""
        return not self.choices

    @property
    def is_integer(self) -> bool:
        """Whether it is a whole number."""
        return self.is_number and self.knob.type == "integer"

    @property
    def bounds(self) -> tuple[Any, Any]:
        """The ends of a number's range. ValueError for a choice."""
        if self.low is None or self.high is None:
            raise ValueError(f"{self.name} is a choice and has no range")
        return self.low, self.high

    @property
    def start(self) -> Any:
        """The default, or the nearest number of the range where the default is a special value."""
        if not self.is_number or self.default not in self.special:
            return self.default
        low, high = self.bounds
        number = 0 if isinstance(self.default, str) else self.default
        return min(max(number, low), high)


@dataclass(frozen=True)
class SearchSpace:
    """Parameters, most important first, and what else holds."""

    case: Case
    dbms: Dbms
    parameters: tuple[Parameter, ...]
    fixed: Mapping[str, Value]  # the study's other knobs, at their default
    risky: Mapping[str, tuple[Value, ...]]  # knob -> values left out because they risk committed data
    space: DesignSpace
    left_out: list[str]  # knobs that stay at their default because nothing else of them is without a risk

    @property
    def default(self) -> Configuration:
        """The default configuration."""
        return dict(self.space.default)

    @property
    def constraints(self) -> dict[str, str]:
        """Knob -> `requires`, for all knobs of the configuration that have one."""
        knobs = {name: self.dbms.knobs[name].requires for name in self.space.default}
        return {name: text for name, text in knobs.items() if text is not None}

    def complete(self, chosen: Mapping[str, Value]) -> Configuration:
        """Return the whole configuration: chosen values, as the DBMS takes them, and the fixed ones."""
        knobs = self.dbms.knobs
        values = {name: knobs[name].settle(knobs[name].canonical(value)) for name, value in chosen.items()}
        return {**self.default, **values}

    def allows(self, configuration: Mapping[str, Value]) -> bool:
        """Whether every `requires` holds, and the DBMS refuses none of the values, alone or together."""
        refused = (value in self.dbms.knobs[name].refused for name, value in configuration.items())
        return not any(refused) and self.space.allows(configuration)


def search_space(
    specs: StudySpecs, case: Case, ranking: Sequence[str], top: int | None, *, with_durability: bool
) -> SearchSpace:
    """Return the space over the first `top` knobs of a ranking (all for None) that have values without risk.

    Knobs come along that the default configuration leaves without effect and one of the first `top` wakes: a ranking
    sees little of them, since they act in few of its runs.
    """
    space = case_space(specs, case)
    knobs, choices = space.dbms.knobs, specs.study.knobs[case.dbms]
    order = [*(name for name in ranking if name in choices), *(name for name in choices if name not in ranking)]
    # The load and the system below are given: only the DBMS is tuned to them, and a control changes nothing.
    order = [name for name in order if not is_factor(name) and not knobs[name].control]
    every = [_parameter(name, knobs[name], choices[name], space.default[name]) for name in order]
    usual = {name: knob.default for name, knob in knobs.items()} | dict(space.default)
    given = {name: value for name, value in usual.items() if name not in order}
    risky = (
        {}
        if with_durability
        else {parameter.name: values for parameter in every if (values := _risky_values(parameter, given))}
    )
    candidates = [
        _without(parameter, risky[parameter.name]) if parameter.name in risky else parameter for parameter in every
    ]
    usable = [parameter for parameter in candidates if parameter is not None]
    first = {parameter.name for parameter in usable[:top]}
    parameters = tuple(p for p in usable if p.name in first.union(space.list_woken(first)))
    names = {parameter.name for parameter in parameters}
    fixed = {name: value for name, value in space.default.items() if name not in names}
    left_out = [name for name, candidate in zip(order, candidates, strict=True) if candidate is None]
    return SearchSpace(case, space.dbms, parameters, fixed, risky, space, left_out)


def _risky_values(parameter: Parameter, given: Mapping[str, Value]) -> tuple[Value, ...]:
    """Return the values of a parameter that risk committed data; the default stays, since it is what runs now.

    `given` are the knobs that nobody tunes: what risks data only together with others is left out unless those see to
    it that it does not.
    """
    if parameter.is_number:
        low, high = parameter.bounds
        listed = [low, high] if parameter.knob.durability is True else parameter.knob.risky_values
        inside = [value for value in listed if not isinstance(value, str) and low <= value <= high]
        values = [*(value for value in inside if value not in parameter.special), *parameter.special]
    else:
        values = [*parameter.choices]
    return tuple(value for value in values if value != parameter.default and parameter.knob.risks(value, given))


def _without(parameter: Parameter, risky: Sequence[Value]) -> Parameter | None:
    """Return a parameter without some of its values; None where only one remains."""
    special = tuple(value for value in parameter.special if value not in risky)
    choices = [value for value in parameter.choices if value not in risky]
    if parameter.is_number:
        low, high = parameter.bounds
        if set(risky) <= set(parameter.special):
            return replace(parameter, special=special)
        if parameter.knob.durability is True or not parameter.is_integer or high - low > _MOST_LISTED:
            return None
        choices = [*(value for value in range(low, high + 1) if value not in risky), *special]
    return replace(parameter, low=None, high=None, special=(), choices=tuple(choices)) if len(choices) > 1 else None


def _parameter(name: str, knob: Knob, choice: KnobChoice | None, default: Value) -> Parameter:
    if knob.range is None:
        all_values = list(knob.values or [False, True])
        listed = choice.values if choice is not None and choice.values is not None else all_values
        choices = (value for value in all_values if value in [*listed, default] and value not in knob.refused)
        return Parameter(name, knob, default, choices=tuple(choices))
    if choice is not None and choice.values is not None:
        values = [knob.canonical(value) for value in [*choice.values, default]]
    else:
        ends = choice.range if choice is not None and choice.range is not None else knob.range
        values = [knob.canonical(value) for value in [*ends, *knob.special, default]]
    special = tuple(dict.fromkeys(value for value in values if value in knob.special))
    numbers: list[Any] = [value for value in values if value not in knob.special]
    if len(set(numbers)) < 2:  # a number of one value and special ones is a choice between them
        return Parameter(name, knob, default, choices=tuple(dict.fromkeys([*numbers, *special])))
    return Parameter(name, knob, default, min(numbers), max(numbers), special)
