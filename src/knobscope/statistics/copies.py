"""Runs that are copies of others: the same figures under two names.

Two runs that were both measured agree in a figure by chance when it has few digits: 8,120 operations per second come
again, 8,120.384 with a latency of 3,456.71 us and 12.384 CPU seconds do not. What the chance is follows from the step
of the figure (the last digit that is written, or one operation of those that were counted) and from noise. Two runs of
the same configuration whose figure has the relative standard deviation s fall on the same step with a probability of
step / (2 sqrt(pi) s value), for normal noise. Half of what runs of one configuration differ by within a block counts as
s, and 0.2 % where that is less or not known: no machine is known to repeat a run of seconds better than that. Digits
beyond a hundred thousand steps (ten thousand for a rate of which nobody tells how many operations were counted) are the
output of a division and count for nothing.

Figures that tell the same thing (throughput and mean latency of a closed loop) count once; speed, tail of the latency,
CPU time and the series of intervals count as independent. Runs that are next to each other both times (a block
that was copied, a table that was appended to itself) are judged together: their chances are multiplied. A coincidence
is a copy when, with as many pairs of runs to compare, fewer than one in a thousand studies would have one like it.
"""

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from itertools import combinations

import numpy as np

from knobscope.statistics.arrays import Floats, Ints

#: False alarms per study, at most.
_ALARMS = 1e-3
#: Relative noise of the steadiest machine.
_LEAST_NOISE = 0.002
#: Share of the observed noise that is counted on, and how many differences have to tell of it.
_NOISE_SHARE = 0.5
_LEAST_DIFFERENCES = 5
_MEDIAN_DIFFERENCE = 0.6745 * 2**0.5  # of two normal values, in standard deviations
#: What histograms of latency tell at best, as a share.
_HISTOGRAM_STEP = 1e-3
#: A long series could tell more than a number holds.
_LEAST_CHANCE = 1e-100
#: Coincidences per run beyond which a table has too few digits for anything to be seen.
_MOST_COINCIDENCES = 50


@dataclass(frozen=True)
class Figure:
    """A figure of all runs: `values` and `chances` are of shape (runs,), NaN and 1 where a run has none.

    `topic` names what it tells about: of one topic the figure counts that tells most. `chances` is how probable it is
    that another run has the same figure.
    """

    topic: str
    values: Floats
    chances: Floats
    may_lack: bool = False  # whether a run without it can be a copy of one that has it


def measured_figure(topic: str, values: Floats, least_steps: Floats, noise: float = _LEAST_NOISE) -> Figure:
    """Return a figure with its chances; `least_steps` is the smallest share of it that the measuring could tell.

    Both are of shape (runs,). The step is that or the last digit that is written, whichever is larger. `noise` is the
    relative standard deviation that is counted on.
    """
    is_positive = np.isfinite(values) & (values > 0)
    enough = float((values * least_steps)[is_positive].min(initial=math.inf))  # a smaller digit makes no difference
    steps = np.maximum(_last_digit(values[is_positive], enough) / np.where(is_positive, values, 1.0), least_steps)
    return Figure(topic, values, np.where(is_positive, np.minimum(1.0, _chance_of(steps, noise)), 1.0))


def cautious_noise(values: Floats, configuration: Ints, block: Ints) -> float:
    """Return the relative noise of a figure that may be counted on.

    All are of shape (runs,), in the order of the blocks and of the positions in them.
    """
    import pandas as pd

    logs = pd.Series(np.log(np.where(values > 0, values, np.nan)))
    differences = logs.groupby([configuration, block]).diff().abs().dropna()
    if len(differences) < _LEAST_DIFFERENCES:
        return _LEAST_NOISE
    return max(_LEAST_NOISE, _NOISE_SHARE * float(differences.median()) / _MEDIAN_DIFFERENCE)


def _chance_of(steps: Floats, noise: float) -> Floats:
    """Return how probable it is that two runs fall on the same step, a share of the value."""
    chances: Floats = steps / (2 * np.sqrt(np.pi) * noise)
    return chances


def chances_of_series(figures: Sequence[Floats]) -> Floats:
    """Return for each series how probable it is that another run has the same; shape (series,).

    A series is of shape (intervals, figures), with at least one interval; NaN is not known. The best figure of each
    interval counts. Percentiles of latency come from histograms that tell a thousandth.
    """
    together = np.concatenate(figures)
    positive = np.where(together > 0, together, np.nan)
    steps = np.maximum(1 / positive, _HISTOGRAM_STEP)
    chances = np.minimum(1.0, np.nan_to_num(_chance_of(steps, _LEAST_NOISE), nan=1.0)).min(axis=1)
    begins = np.cumsum([0, *(len(rows) for rows in figures[:-1])])
    return np.maximum(_LEAST_CHANCE, np.multiply.reduceat(chances, begins))


def _last_digit(values: Floats, enough: float) -> float:
    """Return the unit of the last digit that any of these values is written with, or one below what is enough."""
    smallest = math.inf
    for value in values.tolist():
        smallest = min(smallest, 10.0 ** int(Decimal(repr(value)).normalize().as_tuple()[2]))
        if smallest <= enough:
            break
    return smallest if len(values) else 1.0


def find_copies(figures: Sequence[Figure], block: Ints) -> Ints:
    """Return for each run the first one that it is a copy of or that is a copy of it: itself where there is none.

    Runs are in the order of their blocks and of their positions in them; `block` is of shape (runs,).
    """
    count = len(block)
    first = np.arange(count, dtype=np.int64)
    chances = _joint_chances([figure for figure in figures if not figure.may_lack], count)
    pairs = {pair: chances[pair[1]] for pair in _find_coincidences(figures)}
    if not pairs or len(pairs) > _MOST_COINCIDENCES * count:
        return first
    for figure in figures:
        if figure.may_lack:
            pairs = dict(_compare_where_both(figure, pairs))
    allowed = np.log(_ALARMS) - np.log(count * (count - 1) / 2)
    for streak in _find_streaks(set(pairs), block):
        if sum(np.log(pairs[pair]) for pair in streak) < allowed:
            for earlier, later in streak:
                first[later] = min(first[later], first[earlier])
    return first


def _compare_where_both(
    figure: Figure, pairs: Mapping[tuple[int, int], float]
) -> Iterator[tuple[tuple[int, int], float]]:
    """Yield the pairs that a figure does not tell apart, with their chances; it adds to them where both have it."""
    for (earlier, later), chance in pairs.items():
        if np.isnan(figure.values[[earlier, later]]).any():
            yield (earlier, later), chance
        elif figure.values[earlier] == figure.values[later]:
            yield (earlier, later), chance * figure.chances[later]


def _find_coincidences(figures: Sequence[Figure]) -> set[tuple[int, int]]:
    """Return all pairs of runs, the earlier first, that agree in every figure that neither may lack."""
    always = [np.nan_to_num(figure.values, nan=-1.0) for figure in figures if not figure.may_lack]
    columns = np.column_stack(always)
    alike: dict[bytes, list[int]] = defaultdict(list)
    for run in np.flatnonzero((columns > 0).any(axis=1)).tolist():
        alike[columns[run].tobytes()].append(run)
    pairs: set[tuple[int, int]] = set()
    for runs in alike.values():
        if len(runs) > 2 * _MOST_COINCIDENCES:  # more pairs than are allowed for all; no need to list them
            return set()
        pairs.update(combinations(runs, 2))
    return pairs


def _joint_chances(figures: Sequence[Figure], count: int) -> Floats:
    """Return the chance that another run has all figures of each run: the product over topics of their best figure."""
    topics: dict[str, Floats] = {}
    for figure in figures:
        topics[figure.topic] = np.minimum(topics.get(figure.topic, np.ones(count)), figure.chances)
    joint: Floats = np.prod(np.array(list(topics.values())), axis=0)
    return joint


def _find_streaks(pairs: set[tuple[int, int]], block: Ints) -> list[list[tuple[int, int]]]:
    """Join coincidences that are next to each other in the blocks of both runs."""
    streaks: dict[tuple[int, int], list[tuple[int, int]]] = {}
    for earlier, later in sorted(pairs):
        before = (earlier - 1, later - 1)
        beside = before in streaks and all(block[run - 1] == block[run] for run in (earlier, later))
        streaks[earlier, later] = streaks[before] if beside else []
        streaks[earlier, later].append((earlier, later))
    return list({id(streak): streak for streak in streaks.values()}.values())
