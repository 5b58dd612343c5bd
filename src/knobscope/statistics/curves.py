"""The curve of each knob in a fit: mean prediction per level, and where its important points are."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.explained import LEAST_MAIN_SHARE, ExplainedTerm
from knobscope.statistics.models import Model
from knobscope.statistics.models.anova import Anova
from knobscope.statistics.points import Axis, find_points
from knobscope.statistics.stopping import Runs, Stop

__all__ = ["important_points", "level_effects"]


def level_effects(model: Model, settings: Settings, factor: str) -> Floats:
    """Return the mean prediction per level of a factor, the other factors as in the rows (partial dependence)."""
    column = settings.factors.index(factor)
    count = len(settings.levels[column])
    codes = np.tile(settings.codes, (count, 1, 1))
    codes[:, :, column] = np.arange(count)[:, None]
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
    stop: Stop, runs: Runs, explained: Sequence[ExplainedTerm], axes: Mapping[str, Axis]
) -> list[dict[str, Any]]:
    """Important points of the ordered knobs whose main effect explains 10 % of the variance or more.

    Over the levels that were seen; ordered by `score`, turn ratio x explained share (Hui et al., SIGMOD 2024). None
    without a fit.
    """
    if stop.model is None:
        return []
    model, noise = stop.model, math.sqrt(_unexplained_variance(stop, runs))
    shares = {term.term.factors[0]: term.explained_share for term in explained if len(term.term.factors) == 1}
    found = []
    for knob, share in shares.items():
        if share < LEAST_MAIN_SHARE:
            continue
        numbers = runs.settings.numbers(knob)
        if numbers is None:
            continue
        axis = axes.get(knob, "linear")
        counts = np.bincount(runs.settings.column(knob), minlength=len(numbers))
        # A special value such as 0 for "off" has no position on a log axis.
        seen = np.array([i for i in np.flatnonzero(counts) if axis == "linear" or numbers[i] > 0], dtype=np.int64)
        if not len(seen):
            continue
        error = noise / math.sqrt(counts[seen].mean())
        effects = level_effects(model, runs.settings, knob)[seen]
        points = find_points([numbers[i] for i in seen], effects.tolist(), axis, error)
        found += [
            {"knob": knob, **point.to_json(), "share": share, "score": point.turn_ratio * share} for point in points
        ]
    return sorted(found, key=lambda point: (-point["score"], point["knob"]))
