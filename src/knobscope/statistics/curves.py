"""The curve of each knob in a fit: mean prediction per level, and where its important points are."""

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.design import Settings, Term
from knobscope.statistics.explained import LEAST_MAIN_SHARE, ExplainedTerm
from knobscope.statistics.models import Model
from knobscope.statistics.models.anova import Anova
from knobscope.statistics.points import Axis, Point, find_points
from knobscope.statistics.stopping import Runs, Stop


def typical_error(noise: float, counts: Ints) -> float:
    """Return the root mean square of the standard errors of means: one of few runs makes it large.

    `noise` is the standard deviation of a run, `counts` has the number of runs of each mean.
    """
    return float(noise * math.sqrt(np.mean(1 / counts)))


def level_effects(model: Model, settings: Settings, factor: str, beside: Mapping[str, int] | None = None) -> Floats:
    """Return the mean prediction per level of a factor, the other factors as in the rows (partial dependence).

    `beside` holds other factors at one level each, by its code.
    """
    column = settings.factors.index(factor)
    count = len(settings.levels[column])
    codes = np.tile(settings.codes, (count, 1, 1))
    codes[:, :, column] = np.arange(count)[:, None]
    for partner, code in (beside or {}).items():
        codes[:, :, settings.factors.index(partner)] = code
    predicted = model.predict(settings.with_codes(codes.reshape(-1, len(settings.factors))))
    return np.asarray(predicted.reshape(count, -1).mean(axis=1))


def _unexplained_variance(stop: Stop, runs: Runs) -> float:
    """What a model leaves of the response: residual variance of an analysis of variance, held-out error of others.

    Trees fit their training rows, noise and all: their residuals say nothing about noise.
    """
    variance = float(np.var(runs.response))
    if isinstance(stop.model, Anova):
        residual = runs.response - stop.model.predict(runs.settings)
        return float((residual**2).sum()) / max(len(residual) - stop.model.columns, 1)
    return variance * (1 - float(np.clip(np.median(stop.r2_splits), 0, 1)))


def important_points(
    stop: Stop,
    runs: Runs,
    explained: Sequence[ExplainedTerm],
    axes: Mapping[str, Axis],
    special: Mapping[str, Collection[Any]] | None = None,
) -> list[dict[str, Any]]:
    """Important points of the ordered knobs in terms that explain 10 % of the variance or more.

    A main effect has one curve. A pair has a curve of each of its knobs at every level of the other one, which `beside`
    names (Algorithm 2 of Hui et al., SIGMOD 2024, and its loop over pairs). Curves are over the levels that were seen;
    points are ordered by `score`, turn ratio x explained share. None without a fit. `special` are values that are none
    of a knob's quantity, such as 0 for "off".
    """
    if stop.model is None:
        return []
    noise = math.sqrt(_unexplained_variance(stop, runs))
    rows = []
    for term in explained:
        if term.explained_share < LEAST_MAIN_SHARE:
            continue
        for knob, beside in _list_curves(term.term, runs.settings):
            settings = runs.settings
            axis, apart = axes.get(knob, "linear"), (special or {}).get(knob, ())
            points = _points_of_curve(stop.model, settings, knob, beside, axis, apart, noise)
            named = {partner: settings.levels_of(partner)[code] for partner, code in beside.items()}
            share = term.explained_share
            rows += [
                {
                    "knob": knob,
                    "beside": named or None,
                    **point.to_json(),
                    "share": share,
                    "score": point.turn_ratio * share,
                }
                for point in points
            ]
    return sorted(rows, key=lambda point: (-point["score"], point["knob"]))


def _list_curves(term: Term, settings: Settings) -> Iterator[tuple[str, dict[str, int]]]:
    """Yield the curves of a term: a knob, and the level at which the other knob of a pair is held."""
    if len(term.factors) == 1:
        yield term.factors[0], {}
    elif len(term.factors) == 2:
        for knob, partner in (term.factors, term.factors[::-1]):
            for code in np.unique(settings.column(partner)).tolist():
                yield knob, {partner: code}


def _points_of_curve(
    model: Model,
    settings: Settings,
    knob: str,
    beside: Mapping[str, int],
    axis: Axis,
    special: Collection[Any],
    noise: float,
) -> list[Point]:
    """Return the points of a knob's curve; `noise` is the standard deviation of a run."""
    numbers = settings.numbers(knob)
    if numbers is None:
        return []
    rows = np.ones(len(settings), bool)
    for partner, code in beside.items():
        rows &= settings.column(partner) == code
    counts = np.bincount(settings.column(knob)[rows], minlength=len(numbers))
    # A special value such as 0 for "off" has no position on the axis.
    has_position = [number not in special and (axis == "linear" or number > 0) for number in numbers]
    level_codes = np.array([i for i in np.flatnonzero(counts) if has_position[i]], dtype=np.int64)
    if not len(level_codes):
        return []
    error = typical_error(noise, counts[level_codes])
    effects = level_effects(model, settings, knob, beside)[level_codes]
    return find_points([numbers[i] for i in level_codes], effects.tolist(), axis, error)
