"""The stage as one pure function: runs so far in, decision, model terms, ranking and important points out."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.durable_files import finite
from knobscope.errors import UserError
from knobscope.processes.parallel import one_thread
from knobscope.statistics.arrays import Bools, Ints
from knobscope.statistics.curves import important_points
from knobscope.statistics.design import FullGrid, PossibleRuns, Settings
from knobscope.statistics.explained import ExplainedTerm, list_terms
from knobscope.statistics.models.forest import ExtraTrees
from knobscope.statistics.points import Axis
from knobscope.statistics.ranking import rank_knobs
from knobscope.statistics.response import read_response, remove_block_offsets
from knobscope.statistics.stability import Conclusions, StopRule, conclude, count_stable, decide, explain_stability
from knobscope.statistics.stopping import Runs, Stop, decide_stop
from knobscope.statistics.tunability import Tunability, measure_tunability

if TYPE_CHECKING:
    import pandas as pd


#: Configurations that the model predicts worst: so many are told.
_MOST_WORST = 5


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
    worst_predicted: list[dict[str, Any]]
    holdout_r2: float | None
    trustworthy: bool
    reason_trust: str
    expected: list[str]  # knobs that had to show less, as they mattered elsewhere; empty where all are asked alike
    fitted: str | None  # the model behind the terms: one of those that `model` stands for
    stable_rounds: int  # for how many rounds the conclusions have been the same; 0 where that was not asked
    tunability: Tunability | None  # None where it was not asked, or the runs are too few

    def to_json(self) -> dict[str, Any]:
        """Return the fields, ready for json.dumps; numbers that JSON cannot hold (infinite) are None."""
        return {name: finite(value) for name, value in asdict(self).items()}


@dataclass(frozen=True)
class _Fit:
    """The decision about some runs, with the model's terms and the important points of its knobs."""

    runs: Runs
    stop: Stop
    explained: list[ExplainedTerm]
    points: list[dict[str, Any]]


@dataclass(frozen=True)
class _Fitter:
    """What is asked of any part of the runs; fields are the parameters of `select_knobs`."""

    factors: Sequence[str]
    response: str
    model: str
    threshold: float
    splits: int
    seed: int
    levels: Mapping[str, Sequence[Any]] | None
    candidates: "pd.DataFrame | None"
    axes: Mapping[str, Axis]
    special: Mapping[str, Collection[Any]]
    expected: frozenset[str]

    def fit(self, runs: "pd.DataFrame", *, only_deciding: bool = False) -> _Fit:
        """Decide about these runs as if they were all there are; `only_deciding` as in `decide_stop`."""
        settings, possible = _encode(runs, self.factors, self.levels, self.candidates)
        values = read_response(runs, self.response, log=True)
        offsets = 0
        if "block" in runs.columns:
            values, offsets = remove_block_offsets(settings.groups(), runs["block"].to_numpy(), values)
        is_random = ~runs["is_chosen"].to_numpy(bool) if "is_chosen" in runs.columns else None
        averaged = Runs.of(settings, values, is_random, offsets, is_log=True)
        looks = count_looks(settings, is_random, runs["round"].to_numpy()) if "round" in runs.columns else ()
        stop = decide_stop(
            *(averaged, self.model, possible, self.threshold, self.splits, self.seed, looks, self.expected),
            only_deciding=only_deciding,
        )
        explained = stop.model.explain(averaged.settings, averaged.response) if stop.model else []
        return _Fit(averaged, stop, explained, important_points(stop, averaged, explained, self.axes, self.special))

    def count_stable(self, runs: "pd.DataFrame", most: int) -> int:
        """Return for how many rounds, `most` at most, the conclusions have been those of the fit of all runs."""
        rounds = sorted(set(runs["round"]))[-most:]
        return count_stable([_conclude(self.fit(runs[runs["round"] <= r], only_deciding=True)) for r in rounds])


def select_knobs(
    runs: "pd.DataFrame",
    factors: Sequence[str],
    response: str,
    model: str = "anova",
    threshold: float = 0.9,
    splits: int = 10,
    seed: int = 0,
    levels: Mapping[str, Sequence[Any]] | None = None,
    candidates: "pd.DataFrame | None" = None,
    axes: Mapping[str, Axis] | None = None,
    special: Mapping[str, Collection[Any]] | None = None,
    stop: StopRule = "r2",
    stable_rounds: int = 3,
    default: Mapping[str, Any] | None = None,
    tunable: Mapping[str, Sequence[Any]] | None = None,
    expected: Sequence[str] = (),
) -> Selection:
    """Fit the runs so far, decide whether to stop measuring, and rank the knobs.

    `runs` has one row per successful run: a column per factor, the response, and optionally `block`, whose offsets are
    removed as far as configurations repeated across blocks (sentinels) show them, `round`, which a stop on stability
    compares, and `is_chosen`: the other runs have to be predicted on their own before stopping. `levels` are all levels
    that the plan may still use; `candidates`, when given, all configurations that it may use (a row each): only their
    cells have to be seen before stopping. `axes` says per factor whether knees are looked for on a linear (default) or
    log axis, `special` which of its values have no place on it. Knobs are ranked by extremely randomised trees where
    the runs are too few for the model. What setting a knob alone would gain is asked of the levels in `tunable`, next
    to a `default` level of every factor. Factors that are `expected` to matter have to show less where there are more
    factors than runs.
    UserError: fewer than two runs or configurations, missing columns or values, a response without logarithm, an
    unknown model.
    """
    _require_comparable(runs, factors)
    asked = (threshold, splits, seed, levels, candidates)
    fitter = _Fitter(factors, response, model, *asked, axes or {}, special or {}, frozenset(expected))
    with one_thread():
        last = fitter.fit(runs)
        # Too few runs for the model asked for: trees give an order even then, though no fit and no decision.
        ranker = last.stop.model or ExtraTrees(seed).fit(last.runs.settings, last.runs.response)
        ranking = rank_knobs(last.runs, ranker, seed)
        tunability = measure_tunability(last.runs, ranker, default or {}, levels or tunable or {}, tunable or {}, seed)
        stable = 0 if stop == "r2" else fitter.count_stable(runs, stable_rounds)
    return Selection(
        stopped=decide(stop, last.stop.stopped, stable, stable_rounds),
        reason=explain_stability(stop, last.stop.reason, stable, stable_rounds),
        runs=len(runs),
        model=model,
        expected=list(expected) if getattr(last.stop.model, "is_sparse", False) else [],
        fitted=last.stop.model.name if last.stop.model is not None else None,
        terms=list_terms(last.explained),
        r2_splits=last.stop.r2_splits,
        importance=[asdict(knob) for knob in ranking.knobs],
        points=last.points,
        worst_predicted=find_worst_predicted(last.runs, last.stop),
        holdout_r2=ranking.holdout_r2,
        trustworthy=ranking.trustworthy,
        reason_trust=ranking.reason,
        stable_rounds=stable,
        tunability=tunability,
    )


def _require_comparable(runs: "pd.DataFrame", factors: Sequence[str]) -> None:
    if len(runs) < 2:
        raise UserError(f"{len(runs)} successful runs; two are the least that can be compared")
    if not factors:
        raise UserError("no factors to select from; expected at least one knob")
    if all(name in runs.columns for name in factors) and len(runs[list(factors)].drop_duplicates()) < 2:
        raise UserError(f"all {len(runs)} successful runs are of one configuration; two are the least to compare")


def find_worst_predicted(runs: Runs, stop: Stop) -> list[dict[str, Any]]:
    """Return the configurations that the model predicts worst when they are held out, in units of the response.

    Something may count there that the model does not know (an interaction of more knobs, a cliff), or a run stalled.
    """
    if stop.predicted is None:
        return []
    errors = np.abs(runs.response - stop.predicted)
    worst = [row for row in np.argsort(-errors, kind="stable") if np.isfinite(errors[row])][:_MOST_WORST]
    return [
        {
            "configuration": {
                factor: levels[code]
                for factor, levels, code in zip(
                    runs.settings.factors, runs.settings.levels, runs.settings.codes[row], strict=True
                )
            },
            "runs": int(runs.counts[row]),
            "measured": runs.in_unit(runs.response[row]),
            "predicted": runs.in_unit(stop.predicted[row]),
        }
        for row in worst
    ]


def mark_selected(selection: Selection, top: int) -> list[dict[str, Any]]:
    """Return the ranking with `stands_out` (above noise, or in a significant term) and `selected`."""
    significant = {knob for term in selection.terms if term["p_value"] is not None for knob in term["factors"]}
    entries = [
        {**entry, "stands_out": entry["above_noise"] or entry["knob"] in significant} for entry in selection.importance
    ]
    return select_first(entries, top)


def select_first(entries: Sequence[Mapping[str, Any]], top: int) -> list[dict[str, Any]]:
    """Return a ranking, the strongest knob first, with `selected`: the first `top` knobs of those that stand out.

    When none does (too few runs to tell), the first `top` go on all the same: the sweep measures them one at a time.
    """
    outstanding = [entry["knob"] for entry in entries if entry["stands_out"]] or [entry["knob"] for entry in entries]
    return [{**entry, "selected": entry["knob"] in outstanding[:top]} for entry in entries]


def _conclude(fit: _Fit) -> Conclusions | None:
    return None if fit.stop.model is None else conclude(fit.explained, fit.points)


def count_looks(settings: Settings, is_random: Bools | None, rounds: Ints) -> list[int]:
    """Return how many random configurations there were after each earlier round."""
    group, drawn = settings.groups(), np.ones(len(rounds), bool) if is_random is None else is_random
    return [len(np.unique(group[(rounds <= last) & drawn])) for last in np.unique(rounds)[:-1]]


def _encode(
    runs: "pd.DataFrame",
    factors: Sequence[str],
    levels: Mapping[str, Sequence[Any]] | None,
    candidates: "pd.DataFrame | None",
) -> tuple[Settings, PossibleRuns]:
    """Return the settings of the runs, and the space of what is possible: the candidates, else the full grid."""
    import pandas as pd

    if candidates is None:
        settings = Settings.from_frame(runs, factors, levels)
        return settings, FullGrid(settings)
    combined = pd.concat([frame[[f for f in factors if f in frame]] for frame in (runs, candidates)])
    everything = Settings.from_frame(combined, factors, levels)
    return everything.take(slice(len(runs))), everything
