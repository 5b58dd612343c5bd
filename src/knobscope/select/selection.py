"""The stage as one pure function: runs so far in, decision, model terms, ranking and important points out."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.errors import UserError
from knobscope.select.anova import Anova
from knobscope.select.blocks import remove_block_offsets
from knobscope.select.design import Floats, FullGrid, Settings, Space
from knobscope.select.explained import LEAST_MAIN_SHARE, ExplainedTerm, list_terms
from knobscope.select.forest import ExtraTrees
from knobscope.select.models import Model
from knobscope.select.parallel import one_thread
from knobscope.select.points import Axis, find_points
from knobscope.select.ranking import rank_knobs
from knobscope.select.stability import Conclusions, StopRule, conclude, count_stable, decide, explain_stability
from knobscope.select.stopping import Runs, Stop, decide_stop

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Selection", "finite", "important_points", "level_effects", "read_response", "select_knobs"]


@dataclass(frozen=True)
class Selection:
    """What a round of screening says; field names are those of the JSON."""

    stopped: bool
    reason: str
    runs: int
    model: str
    terms: list[dict[str, Any]]
    r2_splits: list[float]
    importance: list[dict[str, Any]]
    points: list[dict[str, Any]]
    holdout_r2: float | None
    trustworthy: bool
    reason_trust: str
    fitted: str | None  # the model behind the terms: one of those that `model` stands for
    stable_rounds: int  # for how many rounds the conclusions have been the same; 0 where that was not asked

    def to_json(self) -> dict[str, Any]:
        """Return the fields, ready for json.dumps; numbers that JSON cannot hold (infinite) are None."""
        return {name: finite(value) for name, value in asdict(self).items()}


def finite(value: Any) -> Any:
    """Replace numbers that JSON cannot hold (infinite, not a number) by None, at any depth."""
    if isinstance(value, dict):
        return {key: finite(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [finite(inner) for inner in value]
    return None if isinstance(value, float) and not np.isfinite(value) else value


def read_response(frame: "pd.DataFrame", response: str, log: bool) -> Floats:
    """Return the response column as numbers, their natural logarithm with `log`. UserError: missing, words, <= 0."""
    import pandas as pd

    if response not in frame.columns:
        raise UserError(f"no column {response!r}; the table has {', '.join(map(str, frame.columns))}")
    values = pd.to_numeric(frame[response], errors="coerce").to_numpy(float)
    if bad := int((~np.isfinite(values)).sum()):
        raise UserError(
            f"column {response!r} is not a finite number in {bad} of {len(values)} rows; leave such runs out"
        )
    if log and len(values) and values.min() <= 0:
        raise UserError(
            f"column {response!r} holds {values.min():g}: its logarithm needs values above 0; "
            "leave failed runs out, or do not take the logarithm"
        )
    return np.asarray(np.log(values) if log else values)


@dataclass(frozen=True)
class _Fit:
    """The decision about some runs, with the model's terms and the important points of its knobs."""

    runs: Runs
    stop: Stop
    explained: list[ExplainedTerm]
    points: list[dict[str, Any]]


def select_knobs(
    runs: "pd.DataFrame",
    factors: Sequence[str],
    response: str,
    model: str = "anova",
    threshold: float = 0.9,
    splits: int = 10,
    seed: int = 0,
    log_response: bool = True,
    levels: Mapping[str, Sequence[Any]] | None = None,
    candidates: "pd.DataFrame | None" = None,
    axes: Mapping[str, Axis] | None = None,
    stop: StopRule = "r2",
    stable_rounds: int = 3,
) -> Selection:
    """Fit the runs so far, decide whether to stop measuring, and rank the knobs.

    `runs` has one row per successful run: a column per factor, the response, and optionally `block`, whose offsets are
    removed as far as configurations repeated across blocks (sentinels) show them, `round`, which a stop on stability
    compares, and `is_chosen`: the other runs have to be predicted on their own before stopping. `levels` are all levels
    that the plan may still use; `candidates`, when given, all configurations that it may use (a row each): only their
    cells have to be seen before stopping. `axes` says per factor whether knees are looked for on a linear (default) or
    log axis. Knobs are ranked by extremely randomised trees where the runs are too few for the model.
    UserError: fewer than two runs or configurations, missing columns or values, a response without logarithm, an
    unknown model.
    """
    if len(runs) < 2:
        raise UserError(f"{len(runs)} successful runs; two are the least that can be compared")
    if not factors:
        raise UserError("no factors to select from; expected at least one knob")
    if all(name in runs.columns for name in factors) and len(runs[list(factors)].drop_duplicates()) < 2:
        raise UserError(f"all {len(runs)} successful runs are of one configuration; two are the least to compare")

    def fit(rows: "pd.DataFrame") -> _Fit:
        settings, possible = _encode(rows, factors, levels, candidates)
        values = read_response(rows, response, log_response)
        if "block" in rows.columns:
            values = remove_block_offsets(settings.groups(), rows["block"].to_numpy(), values)
        is_random = ~rows["is_chosen"].to_numpy(bool) if "is_chosen" in rows.columns else None
        averaged = Runs.of(settings, values, is_random)
        decision = decide_stop(averaged, model, possible, threshold, splits, seed)
        explained = decision.model.explain(averaged.settings, averaged.response) if decision.model else []
        return _Fit(averaged, decision, explained, important_points(decision, averaged, explained, axes or {}))

    with one_thread():
        last = fit(runs)
        # Too few runs for the model asked for: trees give an order even then, though no fit and no decision.
        ranker = last.stop.model or ExtraTrees(seed).fit(last.runs.settings, last.runs.response)
        ranking = rank_knobs(last.runs, ranker, seed)
        stable = 0
        if stop != "r2":
            earlier = sorted(set(runs["round"]))[-stable_rounds:-1]
            stable = count_stable([*(_conclude(fit(runs[runs["round"] <= r])) for r in earlier), _conclude(last)])
    return Selection(
        stopped=decide(stop, last.stop.stopped, stable, stable_rounds),
        reason=explain_stability(stop, last.stop.reason, stable, stable_rounds),
        runs=len(runs),
        model=model,
        fitted=last.stop.model.name if last.stop.model is not None else None,
        terms=list_terms(last.explained),
        r2_splits=last.stop.r2_splits,
        importance=[asdict(knob) for knob in ranking.knobs],
        points=last.points,
        holdout_r2=ranking.holdout_r2,
        trustworthy=ranking.trustworthy,
        reason_trust=ranking.reason,
        stable_rounds=stable,
    )


def _conclude(fit: _Fit) -> Conclusions | None:
    return None if fit.stop.model is None else conclude(fit.explained, fit.points)


def _encode(
    runs: "pd.DataFrame",
    factors: Sequence[str],
    levels: Mapping[str, Sequence[Any]] | None,
    candidates: "pd.DataFrame | None",
) -> tuple[Settings, Space]:
    """Return the settings of the runs, and the space of what is possible: the candidates, else the full grid."""
    import pandas as pd

    if candidates is None:
        settings = Settings.from_frame(runs, factors, levels)
        return settings, FullGrid(settings)
    both = pd.concat([frame[[f for f in factors if f in frame]] for frame in (runs, candidates)])
    everything = Settings.from_frame(both, factors, levels)
    return everything.take(slice(len(runs))), everything


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
        # A special value such as 0 for "off" has no place on a log axis.
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
