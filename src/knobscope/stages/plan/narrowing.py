"""Leaves out of later screening rounds the settings that make a DBMS several times slower.

Such a setting (a wait at every commit, two plans that are both forbidden) is a bottleneck next to which no other knob
counts, so the runs that have it say nothing about the others. As in bump hunting (Friedman and Fisher, Statistics and
Computing 9, 1999) levels, and pairs of levels, are peeled off one by one, and after each of them the rest is looked at
anew: what is slow only together with a setting that was peeled off already is not held against others.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from knobscope.specs import Clash, Value, is_factor
from knobscope.stages.plan.sampling import DesignSpace, Key
from knobscope.statistics.arrays import Bools, Floats
from knobscope.statistics.ranks import rank_values

#: How many times slower than without it, in the geometric mean, makes a setting costly.
_TIMES_SLOWER = 4.0
#: How many times slower than with one of them alone two levels have to be together; else the one is what costs.
_TOGETHER = 2.0
#: One of all levels, or of all pairs of levels, is called costly by chance with this probability at most (Bonferroni).
_CHANCE = 0.05
#: Configurations with the setting, and without it, that are needed to tell.
_LEAST = 8


@dataclass(frozen=True)
class CostlySetting:
    """A level of a knob, or of each of two, and how many times slower the DBMS was with it than without."""

    values: Mapping[str, Value]
    times_slower: float
    configurations: int  # with it


@dataclass(frozen=True)
class _Levels:
    """All levels that may be left out, and those of the default, which may be in pairs."""

    space: DesignSpace

    @cached_property
    def names(self) -> list[tuple[str, Value]]:
        """Knob and level, of all but factors of load or system: these are asked about and not tuned."""
        return [(name, level) for name, levels in self.space.levels.items() if not is_factor(name) for level in levels]

    @cached_property
    def are_usual(self) -> Bools:
        """Which of them the default configuration has, shape (levels,)."""
        return np.array([self.space.default[name] == level for name, level in self.names], bool)

    def find_in(self, keys: Sequence[Key]) -> Floats:
        """Return which configurations have which levels (1 or 0), shape (configurations, levels)."""
        columns = {name: number for number, name in enumerate(self.space.levels)}
        return np.array([[key[columns[name]] == level for name, level in self.names] for key in keys], float)


def find_costly(space: DesignSpace, earlier: Mapping[Key, float]) -> list[CostlySetting]:
    """Return the settings that earlier rounds showed to be costly, the clearest first.

    `earlier` is the mean log throughput by configuration, NaN where none is known. The default configuration has none
    of them, as all is compared with it.
    """
    responses = {key: response for key, response in earlier.items() if math.isfinite(response)}
    levels, settings = _Levels(space), list[CostlySetting]()
    has = levels.find_in(list(responses)).reshape(len(responses), len(levels.names))
    response = np.array(list(responses.values()))
    while (cell := _clearest(has, response, levels.are_usual)) is not None:
        with_it = has[:, cell].all(axis=1)
        slower = math.exp(response[~with_it].mean() - response[with_it].mean())
        settings.append(CostlySetting(dict(levels.names[level] for level in cell), slower, int(with_it.sum())))
        has, response = has[~with_it], response[~with_it]
    return settings


def find_failing(space: DesignSpace, earlier: Mapping[Key, float]) -> list[CostlySetting]:
    """Return the levels with which no configuration of earlier rounds succeeded, though several were tried."""
    settings = []
    for column, (name, levels) in enumerate(space.levels.items()):
        for level in levels:
            responses = [response for key, response in earlier.items() if key[column] == level]
            if len(responses) >= _LEAST and not any(map(math.isfinite, responses)):
                settings.append(CostlySetting({name: level}, math.inf, len(responses)))
    return settings


def _clearest(has: Floats, response: Floats, are_usual: Bools) -> list[int] | None:
    """Return the level, or the two, with which the DBMS is most surely several times slower.

    How sure that is says the rank test of Mann and Whitney, for all levels and pairs of them at once.
    """
    from scipy.special import log_ndtr

    total, ranks = len(response), rank_values(response)
    with_it = has.T @ has  # configurations with both levels of a pair, on the diagonal with one level
    without, is_one = total - with_it, np.eye(len(are_usual), dtype=bool)
    may_be = (with_it >= _LEAST) & (without >= _LEAST) & ~np.logical_and.outer(are_usual, are_usual)
    may_be &= np.triu(np.ones_like(is_one))  # each pair once
    if not may_be.any():
        return None
    with np.errstate(divide="ignore", invalid="ignore"):
        sums = has.T @ (response[:, None] * has)
        lost = (response.sum() - sums) / without - sums / with_it
        expected, variance = with_it * (total + 1) / 2, with_it * without * _spread(ranks)
        chance = log_ndtr((has.T @ (ranks[:, None] * has) - expected + 0.5) / np.sqrt(variance))
        alone = (sums.diagonal()[:, None] - sums) / (with_it.diagonal()[:, None] - with_it) - sums / with_it
        is_together = is_one | (np.minimum(alone, alone.T) >= math.log(_TOGETHER))
    for kind in (is_one, ~is_one):
        chance = chance + np.log(max(int((may_be & kind).sum()), 1)) * kind
    chance = np.where(may_be & is_together & (lost >= math.log(_TIMES_SLOWER)), chance, 0)
    cell = np.unravel_index(np.argmin(chance), chance.shape)
    return sorted({int(level) for level in cell}) if chance[cell] < math.log(_CHANCE) else None


def _spread(ranks: Floats) -> float:
    """Return what the variance of a sum of ranks is by the numbers of ranks in it and not in it, with ties."""
    total = len(ranks)
    return float(ranks.var() * total / (total - 1)) / total


def narrow(space: DesignSpace, costly: Sequence[CostlySetting]) -> DesignSpace:
    """Return the configurations without those settings."""
    alone = [(name, level) for setting in costly if len(setting.values) == 1 for name, level in setting.values.items()]
    levels = {name: [level for level in of if (name, level) not in alone] for name, of in space.levels.items()}
    pairs = [
        Clash(values=dict(setting.values), words="several times slower")
        for setting in costly
        if len(setting.values) > 1
    ]
    dbms = space.dbms.model_copy(update={"clashes": [*space.dbms.clashes, *pairs]})
    return replace(space, dbms=dbms, levels=levels)
