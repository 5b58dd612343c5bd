"""Whether a setting changes the I/O: runs with it between runs of what it is compared with.

Each run with the setting is compared with the mean of the reference runs before and after it, so that steady drift
cancels. The noise is that of successive reference runs, never less than that of a Poisson count, or of the mean of so
many sizes: a single request more, or a larger one among few, is no change. Per operation, I/O that a timer causes looks
like more when the load is slower; per second, I/O that operations cause looks like less. A count has therefore to
change both ways and in the same direction.
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from knobscope.statistics.arrays import Bools, Floats
from knobscope.statistics.regression import t_probability

#: Chance with which a setting that changes nothing may be called related, over all responses and looks.
_SIGNIFICANCE = 0.001
#: A response whose smallest p value is above this is not pursued.
_PURSUED = 0.05
#: Pairs of runs that a verdict needs.
FEWEST_PAIRS = 2
#: Of noise estimated from fewer differences than this nothing is concluded.
_FEWEST_DIFFERENCES = 3


@dataclass(frozen=True)
class _Responses:
    """Responses of a run: of counts per operation and per window, otherwise twice the same; NaN: not measured."""

    figures: Floats  # (responses, 2), logarithms; shares as they are
    variance: Floats  # (responses,) at least: that of a Poisson count, and of the mean size of so many requests


@dataclass(frozen=True)
class Trial:
    """A run with a setting, and the runs before and after it that it is compared with: rows of `read_io_profiles`."""

    run: Mapping[str, float]
    references: Sequence[Mapping[str, float]]


@dataclass(frozen=True)
class Change:
    """What trials of a setting show: `related`, `none`, or `open` where further trials could tell."""

    verdict: str
    response: str | None = None  # the one with the smallest p value
    log_ratio: float = math.nan  # of shares the difference
    p_value: float = 1.0  # over all responses


@dataclass(frozen=True)
class IoNoise:
    """Standard deviation of a run's responses, from successive reference runs."""

    names: tuple[str, ...]
    deviation: Floats  # (responses, 2)
    degrees: Floats  # (responses, 1)

    @classmethod
    def of(cls, names: Sequence[str], runs: Sequence[Sequence[Mapping[str, float]]]) -> "IoNoise":
        """Estimate it from series of runs of the same configuration, each in the order of time."""
        steps = [
            _read(names, after).figures - _read(names, before).figures
            for series in runs
            for before, after in pairwise(series)
        ]
        differences = np.array(steps).reshape(-1, len(names), 2)
        is_known = np.isfinite(differences)
        degrees = is_known.all(axis=2).sum(axis=0)[:, None].astype(float)
        squares = np.where(is_known, differences, 0.0) ** 2
        with np.errstate(divide="ignore", invalid="ignore"):
            deviation = np.sqrt(squares.sum(axis=0) / degrees / 2)
            # Successive differences share a run: n of them have 2 n^2 / (3 n - 1) degrees (von Neumann, 1941).
            independent = 2 * degrees**2 / (3 * degrees - 1)
        return cls(tuple(names), np.where(degrees < _FEWEST_DIFFERENCES, np.nan, deviation), independent)


def judge_trials(trials: Sequence[Trial], noise: IoNoise, smallest: float, looks: int, *, is_last: bool) -> Change:
    """Judge what a setting changes; `smallest` is the relative change that counts, `looks` how often this may be asked.

    Without a response that was measured on both sides the verdict is `none`.
    """
    if len(trials) < FEWEST_PAIRS:
        return Change("open")
    differences, poisson = zip(*(_compare(noise.names, trial) for trial in trials), strict=True)
    steps = np.array(differences)  # (trials, responses, 2)
    means = steps.mean(axis=0)
    spread = np.maximum(noise.deviation**2, np.mean(poisson, axis=0)[:, None])
    # A run is compared with the mean of two others, and trials in a row share one of those: of n trials the mean has
    # (2 n - 1/2) / n^2 of a run's variance.
    count = len(trials)
    p_values = t_probability(means, np.sqrt((2 * count - 0.5) * spread) / count, noise.degrees)
    agrees = _agrees(steps, math.log1p(smallest))
    p_of_response = np.where(agrees & np.isfinite(p_values).all(axis=1), p_values.max(axis=1), 1.0)
    best = int(np.argmin(p_of_response))
    tested = max(int(np.isfinite(p_values).all(axis=1).sum()), 1)
    p_value = min(1.0, float(p_of_response[best]) * tested * looks)
    weaker = int(np.argmin(np.abs(means[best])))
    change = (noise.names[best], float(means[best, weaker]), p_value)
    if p_value <= _SIGNIFICANCE:
        return Change("related", *change)
    return Change("none" if is_last or p_of_response[best] > _PURSUED else "open", *change)


def _agrees(steps: Floats, smallest: float) -> Bools:
    """Return which responses changed by so much, on average, and in all trials the same way, by both counts."""
    signs = np.sign(steps)
    is_one_way = (signs == signs[:1, :, :1]).all(axis=(0, 2)) & (signs[0, :, 0] != 0)
    with np.errstate(invalid="ignore"):
        return np.asarray(is_one_way & (np.abs(steps.mean(axis=0)).min(axis=1) >= smallest))


def _compare(names: Sequence[str], trial: Trial) -> tuple[Floats, Floats]:
    """Return what a run has more than the mean of its references, and the Poisson variance of a count."""
    run, before, after = (_read(names, row) for row in (trial.run, *trial.references))
    variance = np.maximum(run.variance, (before.variance + after.variance) / 2)
    return run.figures - (before.figures + after.figures) / 2, variance


def _read(names: Sequence[str], row: Mapping[str, float]) -> _Responses:
    operations = float(row["operations"])
    figures, variance = np.full((len(names), 2), np.nan), np.zeros(len(names))
    for index, name in enumerate(names):
        value = float(row[name])
        if name.endswith("_per_op"):
            count = value * operations
            figures[index] = math.log((count + 1) / operations), math.log(count + 1)
            variance[index] = 1 / (count + 1)
        elif name.endswith("_share"):
            figures[index] = value
        elif value > 0:
            figures[index] = math.log(value)
            variance[index] = 1 / (_count_behind(name, row) * operations + 1)
    return _Responses(figures, variance)


def _count_behind(name: str, row: Mapping[str, float]) -> float:
    """Return per operation how many requests or calls a mean size is of; 1 of what is no size."""
    return float(row.get(f"{name.removesuffix('_size')}s_per_op", 1.0)) if name.endswith("_size") else 1.0
