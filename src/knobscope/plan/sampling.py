"""Draws screening configurations: Latin hypercube or random, over levels, under constraints, never one twice."""

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import product

import numpy as np

from knobscope.specs import Dbms, Value

__all__ = ["Space", "draw_configurations"]

Configuration = dict[str, Value]

#: Fresh draws before a round ends short: the space is (nearly) used up.
_ATTEMPTS = 20
#: Repairs of one knob may break another; more passes than this mean that the levels hardly allow anything.
_PASSES = 4


@dataclass(frozen=True)
class Space:
    """The configurations a study may draw: levels per knob, and what must hold between them."""

    dbms: Dbms
    levels: Mapping[str, list[Value]]
    baseline: Mapping[str, Value]
    facts: Mapping[str, Value]  # threads and records of the workload, for `requires`

    def allows(self, configuration: Mapping[str, Value]) -> bool:
        """Whether every `requires` of the knobs in the configuration holds."""
        return all(self._holds(name, configuration) for name in configuration)

    def _holds(self, name: str, configuration: Mapping[str, Value]) -> bool:
        requirement = self.dbms.knobs[name].requirement
        if requirement is None:
            return True
        defaults = {other: self.dbms.knobs[other].default for other in requirement.names & set(self.dbms.knobs)}
        return requirement.holds({**defaults, **self.facts, **configuration})

    def repair(self, configuration: Configuration) -> Configuration | None:
        """Move knobs whose `requires` fails to the nearest levels that satisfy it; None when there are none.

        Rejecting instead would unbalance the levels. A knob may be required in several places: hence a few passes.
        """
        repaired = configuration
        for _ in range(_PASSES):
            failing = [name for name in self.levels if not self._holds(name, repaired)]
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
        for places in sorted(moves, key=lambda places: sum(abs(a - b) for a, b in zip(places, at, strict=True))):
            change = {knob: self.levels[knob][place] for knob, place in zip(movable, places, strict=True)}
            if self._holds(name, {**configuration, **change}):
                return change
        return None


def draw_configurations(
    space: Space, method: str, count: int, rng: np.random.RandomState, seen: set[tuple[Value, ...]]
) -> list[Configuration]:
    """Return up to `count` configurations that are allowed and not in `seen`, which grows by them.

    `lhs` takes a Latin hypercube of pyDOE2 and cuts each axis into the knob's levels, so that every level comes equally
    often; `random` draws levels independently ("On the Feasibility and Benefits of Extensive Evaluation", SIGMOD 2024,
    section 4). Fewer than `count` come back only when the space is nearly used up.
    """
    found: list[Configuration] = []
    for _ in range(_ATTEMPTS):
        points = _unit_points(method, len(space.levels), count - len(found), rng)
        for point in points:
            configuration = space.repair(_at_point(space, point))
            key = None if configuration is None else tuple(configuration[name] for name in space.levels)
            if configuration is not None and key is not None and key not in seen:
                seen.add(key)
                found.append(configuration)
        if len(found) == count:
            break
    return found


def _at_point(space: Space, point: np.ndarray) -> Configuration:
    drawn = {
        name: levels[min(int(share * len(levels)), len(levels) - 1)]
        for (name, levels), share in zip(space.levels.items(), point, strict=True)
    }
    return {**space.baseline, **drawn}


def _unit_points(method: str, dimensions: int, count: int, rng: np.random.RandomState) -> np.ndarray:
    """Return points of the unit cube, shape (count, dimensions)."""
    if method == "random" or count == 1:
        return rng.random_sample((count, dimensions))
    try:
        from pyDOE2 import lhs  # imports on Python 3.11 only
    except ImportError:
        from pydoe import lhs  # its maintained successor
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*random_state.*")  # its other argument gives other numbers
        points: np.ndarray = lhs(dimensions, samples=count, random_state=rng)
    return points
