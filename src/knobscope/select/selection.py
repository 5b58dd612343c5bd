"""The stage as one pure function: runs so far in, decision, model terms, ranking and important points out."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.errors import UserError
from knobscope.select.blocks import remove_block_offsets
from knobscope.select.design import Floats, FullGrid, Settings, Space
from knobscope.select.forest import ExtraTrees
from knobscope.select.models import Model, explain_terms
from knobscope.select.parallel import one_thread
from knobscope.select.points import Axis, find_points
from knobscope.select.ranking import Ranking, rank_knobs
from knobscope.select.stopping import Runs, decide_stop

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Selection", "finite", "level_effects", "read_response", "select_knobs"]


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
) -> Selection:
    """Fit the runs so far, decide whether to stop measuring, and rank the knobs.

    `runs` has one row per successful run: a column per factor, the response, and optionally `block`, whose offsets are
    removed as far as configurations repeated across blocks (sentinels) show them. `levels` are all levels that the plan
    may still use; `candidates`, when given, all configurations that it may use (a row each): only their cells have to
    be seen before stopping. `axes` says per factor whether knees are looked for on a linear (default) or log axis.
    Knobs are ranked by extremely randomised trees where the runs are too few for the model.
    UserError: fewer than two runs, missing columns or values, a response without logarithm, an unknown model.
    """
    if len(runs) < 2:
        raise UserError(f"{len(runs)} successful runs; two are the least that can be compared")
    if not factors:
        raise UserError("no factors to select from; expected at least one knob")
    settings, possible = _encode(runs, factors, levels, candidates)
    values = read_response(runs, response, log_response)
    if "block" in runs.columns:
        values = remove_block_offsets(settings.groups(), runs["block"].to_numpy(), values)
    averaged = Runs.of(settings, values)
    with one_thread():
        stop = decide_stop(averaged, model, possible, threshold, splits, seed)
        # Too few runs for the model asked for: trees give an order even then, though no fit and no decision.
        ranker = stop.model or ExtraTrees(seed).fit(averaged.settings, averaged.response)
        ranking = rank_knobs(averaged, ranker, seed)
        points = _points(stop.model, averaged, ranking, axes or {}) if stop.model is not None else []
    return Selection(
        stopped=stop.stopped,
        reason=stop.reason,
        runs=len(runs),
        model=model,
        terms=explain_terms(stop.model, averaged.settings) if stop.model is not None else [],
        r2_splits=stop.r2_splits,
        importance=[asdict(knob) for knob in ranking.knobs],
        points=points,
        holdout_r2=ranking.holdout_r2,
        trustworthy=ranking.trustworthy,
        reason_trust=ranking.reason,
    )


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


def _points(model: Model, runs: Runs, ranking: Ranking, axes: Mapping[str, Axis]) -> list[dict[str, Any]]:
    """Important points of the ordered knobs that are above noise, over the levels that were seen."""
    residual = runs.response - model.predict(runs.settings)
    found = []
    for knob in (ranked.knob for ranked in ranking.knobs if ranked.above_noise):
        numbers = runs.settings.numbers(knob)
        if numbers is None:
            continue
        counts = np.bincount(runs.settings.column(knob), minlength=len(numbers))
        seen = np.flatnonzero(counts)
        error = float(residual.std() / np.sqrt(counts[seen].mean()))
        effects = level_effects(model, runs.settings, knob)[seen]
        points = find_points([numbers[i] for i in seen], effects.tolist(), axes.get(knob, "linear"), error)
        found += [{"knob": knob, **point.to_json()} for point in points]
    return found
