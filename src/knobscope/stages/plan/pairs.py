"""Pairs of knobs that screening shows to interact, swept together.

One knob at a time tells what a knob does together with the defaults of all others. Where the model of screening holds a
term of two knobs, that is not what it does together with other values. So the sweep also measures values of the one
together with values of the other; with the values alone, and the default, in the same block, the difference is the
interaction (`knobscope.stages.detect.pairs`).
"""

from collections.abc import Iterable, Mapping, Sequence
from itertools import product
from typing import Any

from knobscope.specs import KnobChoice, Value
from knobscope.stages.plan.levels import sweep_levels
from knobscope.stages.plan.sampling import Configuration, DesignSpace

#: A term that explains less of the variance of the response than this is not worth runs of its own.
_LEAST_SHARE = 0.01
#: Of a pair with more combinations than these only the outermost values are swept.
_MOST_COMBINATIONS = 9


def interacting_pairs(fits: Iterable[Mapping[str, Any]], most: int) -> list[tuple[str, str]]:
    """Return up to `most` pairs of knobs, the strongest first, from documents of `knobscope select`.

    A pair is as strong as its term in the fit that has most of it.
    """
    if not most:
        return []
    shares: dict[tuple[str, str], float] = {}
    for fit in fits:
        for term in fit["terms"]:
            if len(term["factors"]) == 2 and term["explained_share"] >= _LEAST_SHARE:
                first, second = sorted(term["factors"])
                shares[first, second] = max(term["explained_share"], shares.get((first, second), 0.0))
    return sorted(shares, key=lambda pair: (-shares[pair], pair))[:most]


def pair_configurations(
    space: DesignSpace, choices: Mapping[str, KnobChoice | None], pairs: Iterable[tuple[str, str]]
) -> list[Configuration]:
    """Return the configurations that change both knobs of a pair, each once.

    Values that count, or are allowed, only together with other changes are left out: alone there is nothing to compare
    with.
    """
    configurations: dict[tuple[Value, ...], Configuration] = {}
    for first, second in pairs:
        for values in product(*_choose(_values(space, choices, first), _values(space, choices, second))):
            configuration = {**space.default, first: values[0], second: values[1]}
            if space.allows(configuration) and all(space.counts(name, configuration) for name in (first, second)):
                configurations[tuple(configuration.values())] = configuration
    return list(configurations.values())


def _values(space: DesignSpace, choices: Mapping[str, KnobChoice | None], knob: str) -> list[Value]:
    """Return the values that are swept of a knob together with the default configuration alone, in its order."""
    levels = sweep_levels(space.dbms.knobs[knob], choices[knob], space.default[knob])
    alone = {value: {**space.default, knob: value} for value in levels if value != space.default[knob]}
    return [
        value
        for value, configuration in alone.items()
        if space.allows(configuration) and space.counts(knob, configuration)
    ]


def _choose(first: Sequence[Value], second: Sequence[Value]) -> tuple[Sequence[Value], Sequence[Value]]:
    if len(first) * len(second) <= _MOST_COMBINATIONS:
        return first, second
    return tuple(dict.fromkeys((first[0], first[-1]))), tuple(dict.fromkeys((second[0], second[-1])))


def count_combinations(first_count: int, second_count: int) -> int:
    """Return how many configurations a pair of knobs with so many values each comes to, at most."""
    return len(list(product(*_choose(range(first_count), range(second_count))))) if first_count and second_count else 0
