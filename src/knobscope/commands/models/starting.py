"""From a prior to a fit: the ranking of an earlier study instead of screening rounds."""

from typing import Any

from knobscope.specs import Case, Prior, PriorRanking, StudySpecs
from knobscope.stages.select import select_first


def fit_from_prior(specs: StudySpecs, prior: Prior, case: Case) -> dict[str, Any]:
    """Return a fit of the case, in the form that `knobscope select` writes, from the prior's rankings of its DBMS.

    Rankings of several devices are joined: a knob's rank is the best that it has on any of them, as when the fits of
    several devices lead to one sweep. Knobs that the study does not vary are left out.
    """
    rankings = prior.rankings_for(case.dbms, specs.workloads[case.workload].class_)
    entries = _join(rankings, set(specs.study.knobs[case.dbms]))
    scores = [ranking.holdout_r2 for ranking in rankings if ranking.holdout_r2 is not None]
    return {
        "prior": prior.name,
        "stopped": True,
        "reason": _describe(prior, rankings),
        "runs": 0,
        "model": rankings[0].model,
        "terms": [],
        "r2_splits": [],
        "importance": select_first(entries, specs.study.screening.top),
        "points": [],
        "holdout_r2": min(scores, default=None),
        "trustworthy": all(ranking.trustworthy for ranking in rankings),
        "reason_trust": "; ".join(dict.fromkeys(ranking.reason for ranking in rankings)),
    }


def _join(rankings: list[PriorRanking], varied: set[str]) -> list[dict[str, Any]]:
    """Return the best entry of each knob, ranked anew."""
    best: dict[str, dict[str, Any]] = {}
    for ranking in rankings:
        for knob in ranking.knobs:
            entry = knob.model_dump()
            if knob.knob in varied and (knob.knob not in best or _order(entry) < _order(best[knob.knob])):
                best[knob.knob] = entry
    ordered = sorted(best.values(), key=_order)
    return [{**entry, "rank": rank} for rank, entry in enumerate(ordered, start=1)]


def _order(entry: dict[str, Any]) -> tuple[int, float, str]:
    return entry["rank"], -entry["permutation"], entry["knob"]


def _describe(prior: Prior, rankings: list[PriorRanking]) -> str:
    cases = ", ".join(
        f"{ranking.dbms} {ranking.dbms_version} on {ranking.device}, {ranking.workload}, "
        f"{ranking.runs} runs until {ranking.measured[:10]}"
        for ranking in rankings
    )
    return f"not screened: the ranking is that of prior {prior.name} (study {prior.study}: {cases})"
