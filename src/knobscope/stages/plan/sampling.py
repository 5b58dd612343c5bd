"""Draws screening configurations over levels, under constraints, never one twice."""

import math
from collections.abc import Iterable, Mapping, Set
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from operator import contains

import numpy as np

from knobscope.specs import Clash, Dbms, Expression, Value, factor_knob
from knobscope.stages.plan.picking import (
    SAMPLERS,
    Draw,
    Sampler,
    count_random,
    latin_hypercube,
    pick_least_known,
    pick_random,
)

Configuration = dict[str, Value]
#: A configuration as a tuple: the values of the varied knobs, in the order of `DesignSpace.levels`.
Key = tuple[Value, ...]

#: Fresh draws before the rest is picked from what is left: the space is nearly used up.
_ATTEMPTS = 20
#: Repairs of one knob may break another; more passes than this mean that the levels hardly allow anything.
_PASSES = 4
#: Methods that choose among possible configurations see all of a space up to this size, else as many random ones.
_POOL = 4096


@dataclass(frozen=True)
class DesignSpace:
    """The configurations a study may draw: levels per knob, and what must hold between them."""

    dbms: Dbms
    levels: Mapping[str, list[Value]]
    default: Mapping[str, Value]
    facts: Mapping[str, Value]  # threads and records of the workload, for `requires` and `when`
    varied: float = 1.0  # share of the knobs that a configuration draws; the others keep their defaults

    def key(self, configuration: Mapping[str, Value]) -> Key:
        """Return the values of the varied knobs; equal settings have equal keys."""
        return tuple(configuration[name] for name in self.levels)

    def allows(self, configuration: Mapping[str, Value]) -> bool:
        """Whether every `requires` of the knobs in the configuration holds, and none of their values clash."""
        return all(self._holds(name, configuration) for name in self._bound & configuration.keys())

    @property
    def is_restricted(self) -> bool:
        """Whether there are configurations that are not allowed."""
        return bool(self._bound & self.levels.keys())

    @cached_property
    def _bound(self) -> frozenset[str]:
        """The knobs that require something or clash: few of hundreds, and many configurations are looked at."""
        knobs = self.dbms.knobs.items()
        return frozenset(name for name, knob in knobs if name in self._clashes or knob.requirement is not None)

    @cached_property
    def _clashes(self) -> dict[str, list[Clash]]:
        """Clashes by the first of their knobs that is varied: `repair` moves that one, whose default is in no clash."""
        by_knob: dict[str, list[Clash]] = {}
        for clash in self.dbms.clashes:
            if (blamed := next((name for name in self.levels if name in clash.values), None)) is not None:
                by_knob.setdefault(blamed, []).append(clash)
        return by_knob

    def counts(self, name: str, configuration: Mapping[str, Value]) -> bool:
        """Whether the `when` of a knob holds in a configuration."""
        return self._is_true(self.dbms.knobs[name].condition, configuration)

    def list_woken(self, names: Set[str]) -> list[str]:
        """Return the knobs that do not count in the default configuration, by a condition on one of these knobs."""
        conditions = {name: self.dbms.knobs[name].condition for name in self.default}
        return [
            name
            for name, condition in conditions.items()
            if condition and not self._is_true(condition, self.default) and not names.isdisjoint(condition.names)
        ]

    def explain_refusal(self, configuration: Mapping[str, Value]) -> str:
        """Say which `requires` of a configuration do not hold, with which values, and what the DBMS says of clashes."""
        knobs = {name: self.dbms.knobs[name].requirement for name in configuration}
        broken = {
            name: requirement for name, requirement in knobs.items() if not self._is_true(requirement, configuration)
        }
        reasons = [
            f"{name} requires {self._describe_broken(requirement, configuration)}"
            for name, requirement in broken.items()
            if requirement
        ]
        reasons += [clash.words for clash in self.dbms.clashes if clash.is_in(configuration)]
        return " and ".join(reasons)

    def explain_idleness(self, name: str, configuration: Mapping[str, Value]) -> str:
        """Say of a knob whose `when` does not hold in a configuration that it does not count, and with which values."""
        condition = self.dbms.knobs[name].condition
        return f"{name} counts when {self._describe_broken(condition, configuration)}" if condition else ""

    def _describe_broken(self, expression: Expression, configuration: Mapping[str, Value]) -> str:
        values = self._values_for(expression, configuration)
        shown = ", ".join(f"{word}={values[word]!r}" for word in sorted(expression.names))
        return f"`{expression.text}`, which does not hold for {shown}"

    def _holds(self, name: str, configuration: Mapping[str, Value]) -> bool:
        if name in self._clashes and any(clash.is_in(configuration) for clash in self._clashes[name]):
            return False
        return self._is_true(self.dbms.knobs[name].requirement, configuration)

    def _is_true(self, expression: Expression | None, configuration: Mapping[str, Value]) -> bool:
        return expression is None or expression.holds(self._values_for(expression, configuration))

    def _values_for(self, expression: Expression, configuration: Mapping[str, Value]) -> dict[str, Value]:
        defaults = {name: self.dbms.knobs[name].default for name in expression.names & self.dbms.knobs.keys()}
        varied = {name: configuration.get(factor_knob(name), value) for name, value in self.facts.items()}
        return {**defaults, **varied, **{name: configuration[name] for name in expression.names & configuration.keys()}}

    def repair(self, configuration: Configuration) -> Configuration | None:
        """Move knobs whose `requires` fails to the nearest levels that satisfy it; None when there are none.

        Rejecting instead would unbalance the levels. A knob may be required by several others: hence a few passes.
        """
        repaired = configuration
        for _ in range(_PASSES):
            failing = [name for name in self.levels if name in self._bound and not self._holds(name, repaired)]
            if not failing:
                return repaired
            for name in failing:
                nearest = self._nearest(name, repaired)
                if nearest is None:
                    return None
                repaired = {**repaired, **nearest}
        return None

    def _nearest(self, name: str, configuration: Configuration) -> Configuration | None:
        """Return the levels of the knob, and of those its `requires` mentions, that hold with the fewest steps."""
        requirement = self.dbms.knobs[name].requirement
        movable = [name, *sorted((requirement.names if requirement else set()) & set(self.levels) - {name})]
        at = [self.levels[knob].index(configuration[knob]) for knob in movable]
        moves = product(*(range(len(self.levels[knob])) for knob in movable))
        for target in sorted(moves, key=lambda target: sum(abs(a - b) for a, b in zip(target, at, strict=True))):
            change = {knob: self.levels[knob][index] for knob, index in zip(movable, target, strict=True)}
            if self._holds(name, {**configuration, **change}):
                return change
        return None


def draw_configurations(
    space: DesignSpace,
    method: str,
    count: int,
    rng: np.random.RandomState,
    known_keys: set[Key],
    responses: Mapping[Key, float] | None = None,
) -> list[Configuration]:
    """Return up to `count` configurations that are allowed and not in `known_keys`, which grows by them.

    `lhs` takes a Latin hypercube of pyDOE2 and cuts each axis into the knob's levels, so that every level comes equally
    often, and the default so much more often as only a share of the knobs is drawn (`varied`); `active` begins with as
    much of one, and `random` draws levels independently. The other methods (see `picking`) choose among all allowed
    configurations, or among some thousand random ones of a large space; those that look at the response use
    `responses`, what is known of configurations in `known_keys`. Fewer than `count` come back only when the space is
    used up.
    """
    if method == "active":
        spread = draw_configurations(space, "lhs", count_random(method, count, len(known_keys)), rng, known_keys)
        return spread + _pick_from_pool(space, pick_least_known, count - len(spread), rng, known_keys, responses or {})
    if method not in ("lhs", "random"):
        return _pick_from_pool(space, SAMPLERS[method], count, rng, known_keys, responses or {})
    draw_points = latin_hypercube if method == "lhs" else _random_points
    configurations: list[Configuration] = []
    for _ in range(_ATTEMPTS):
        points = draw_points(len(space.levels), count - len(configurations), rng)
        configurations += _new_ones(space, (_at_point(space, point) for point in points), known_keys)
        if len(configurations) == count:
            return configurations
    return configurations + _pick_from_pool(space, pick_random, count - len(configurations), rng, known_keys, {})


def _new_ones(space: DesignSpace, drawn: Iterable[Configuration], known_keys: set[Key]) -> list[Configuration]:
    """Return the drawn configurations, repaired, that are not in `known_keys`, which grows by them."""
    configurations = []
    for configuration in drawn:
        repaired = space.repair(configuration)
        if repaired is not None and (key := space.key(repaired)) not in known_keys:
            known_keys.add(key)
            configurations.append(repaired)
    return configurations


def _pick_from_pool(
    space: DesignSpace,
    pick: Sampler,
    count: int,
    rng: np.random.RandomState,
    known_keys: set[Key],
    responses: Mapping[Key, float],
) -> list[Configuration]:
    """Let a sampler of `picking` choose among configurations that are possible."""
    sampled_keys = [key for key in sorted(known_keys, key=repr) if all(map(contains, space.levels.values(), key))]
    pool = [*sampled_keys, *(space.key(configuration) for configuration in _pool(space, rng, set(known_keys)))]
    draw = Draw(
        codes=np.array([_codes(space, key) for key in pool]).reshape(len(pool), len(space.levels)),
        levels=tuple(len(levels) for levels in space.levels.values()),
        taken=np.arange(len(sampled_keys)),
        response=np.array([responses.get(key, math.nan) for key in sampled_keys]),
        count=count,
        rng=np.random.default_rng(rng.randint(2**31)),
    )
    chosen = [pool[row] for row in pick(draw)]
    known_keys.update(chosen)
    return [{**space.default, **dict(zip(space.levels, key, strict=True))} for key in chosen]


def _pool(space: DesignSpace, rng: np.random.RandomState, known_keys: set[Key]) -> list[Configuration]:
    """Return allowed configurations that are not in `known_keys`: all of a small space, random ones of a large one."""
    if math.prod(len(levels) for levels in space.levels.values()) > _POOL:
        points = rng.random_sample((_POOL, len(space.levels)))
        return _new_ones(space, (_at_point(space, point) for point in points), known_keys)
    everything = (dict(zip(space.levels, values, strict=True)) for values in product(*space.levels.values()))
    return [
        configuration
        for values in everything
        if (configuration := {**space.default, **values})
        and space.key(configuration) not in known_keys
        and space.allows(configuration)
    ]


def _codes(space: DesignSpace, key: Key) -> list[int]:
    return [levels.index(value) for levels, value in zip(space.levels.values(), key, strict=True)]


def _at_point(space: DesignSpace, point: np.ndarray) -> Configuration:
    drawn = {
        name: levels[min(int(share / space.varied * len(levels)), len(levels) - 1)]
        for (name, levels), share in zip(space.levels.items(), point, strict=True)
        if share < space.varied
    }
    return {**space.default, **drawn}


def _random_points(dimensions: int, count: int, rng: np.random.RandomState) -> np.ndarray:
    """Return random points of the unit cube, shape (count, dimensions)."""
    return rng.random_sample((count, dimensions))
