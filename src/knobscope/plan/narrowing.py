"""Leaves out of later screening rounds the levels that make a DBMS several times slower.

One such setting (a wait at every commit, a plan that may not be used) is a bottleneck beside which no other knob
counts, so the runs that have it say nothing about the others. As in bump hunting (Friedman and Fisher, Statistics and
Computing 9, 1999) levels are peeled off one by one, and after each of them the rest is looked at anew: an effect that
shows only beside another one is not taken for that of both.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from knobscope.plan.sampling import Key, Space
from knobscope.specs import Value, is_factor
from knobscope.statistics.arrays import Floats, Ints

__all__ = ["CostlyLevel", "find_costly", "narrow"]

#: How many times slower than with the other levels of the knob, in the geometric mean, makes a level costly.
_TIMES_SLOWER = 4.0
#: One of all levels looked at is called costly by chance with this probability at most (Bonferroni).
_CHANCE = 0.05
#: Configurations with the level, and without it, that are needed to tell.
_LEAST = 8


@dataclass(frozen=True)
class CostlyLevel:
    """A level of a knob, how many times slower the DBMS is with it, and the configurations that showed it."""

    knob: str
    value: Value
    times_slower: float
    configurations: int


def find_costly(space: Space, earlier: Mapping[Key, float]) -> list[CostlyLevel]:
    """Return the levels that earlier rounds showed to be costly, the clearest first.

    `earlier` is the mean log throughput by configuration, NaN where none is known. The level of the default
    configuration is never one of them: all is compared with it. Nor is one of a factor of load or system, such as the
    number of threads: that is asked about and not tuned.
    """
    known = {key: response for key, response in earlier.items() if math.isfinite(response)}
    codes = np.array([_codes(space, key) for key in known], int).reshape(len(known), len(space.levels))
    response, found = np.array(list(known.values()), float), list[CostlyLevel]()
    while (costly := _clearest(space, codes, response)) is not None:
        found.append(costly)
        knob = list(space.levels).index(costly.knob)
        rest = codes[:, knob] != space.levels[costly.knob].index(costly.value)
        codes, response = codes[rest], response[rest]
    return found


def _codes(space: Space, key: Key) -> list[int]:
    return [levels.index(value) for levels, value in zip(space.levels.values(), key, strict=True)]


def _clearest(space: Space, codes: Ints, response: Floats) -> CostlyLevel | None:
    """Return the level that is the most surely costly, by the ranks of the responses with it and without it."""
    from scipy.stats import mannwhitneyu

    least, clearest, looked_at = 1.0, None, 0
    for column, (knob, levels) in enumerate(space.levels.items()):
        if is_factor(knob):
            continue
        for code, value in enumerate(levels):
            has = codes[:, column] == code
            if value == space.default[knob] or min(has.sum(), (~has).sum()) < _LEAST:
                continue
            looked_at += 1
            lost = float(response[~has].mean() - response[has].mean())
            if lost < math.log(_TIMES_SLOWER):
                continue
            chance = float(mannwhitneyu(response[has], response[~has], alternative="less").pvalue)
            if chance < least:
                least, clearest = chance, CostlyLevel(knob, value, math.exp(lost), int(has.sum()))
    return clearest if least * looked_at < _CHANCE else None


def narrow(space: Space, costly: Sequence[CostlyLevel]) -> Space:
    """Return the configurations without those levels."""
    left_out = {(one.knob, one.value) for one in costly}
    levels = {
        knob: [value for value in values if (knob, value) not in left_out] for knob, values in space.levels.items()
    }
    return replace(space, levels=levels)
