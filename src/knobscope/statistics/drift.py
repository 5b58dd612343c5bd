"""Importance drift: which knobs change their rank when the device or the workload changes, and what stays on top.

Two cases are compared when they differ in one thing only, device or workload. A change of rank counts only when both
rankings are trustworthy and the 90 % intervals of the two ranks lie clearly apart: with many knobs, those of one or
another fail to meet by chance.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

#: Leaders whose overlap is looked at.
TOP = 5

#: An interval is widened by this part of its distance from the rank, and by so many ranks: with both, one of a hundred
#: comparisons of a system with itself has a knob that drifts (`benchmarks/truth/rank_intervals.py`).
_WIDER, _RANKS = 0.5, 1

#: A case: DBMS, device, workload.
Names = tuple[str, str, str]
Fit = Mapping[str, Any]


def rank_drift(fits: Mapping[Names, Fit]) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """Return rows of tables `rank_drift` (one per knob and pair of cases) and `rank_overlap` (one per pair of cases).

    `fits` are the documents of `knobscope select` per case; knobs that only one of two cases ranks are left out.
    """
    knobs, pairs = [], []
    for pair, first, second in _pairs(fits):
        ranks = [{entry["knob"]: entry for entry in fit["importance"]} for fit in (first, second)]
        is_certain = bool(first["trustworthy"] and second["trustworthy"])
        rows = [
            {**pair, **_change(ranks[0][knob], ranks[1][knob], is_certain)}
            for knob in sorted(ranks[0].keys() & ranks[1].keys())
        ]
        knobs += rows
        leaders = [_leaders(fit["importance"]) for fit in (first, second)]
        pairs.append(
            {
                **pair,
                "top": min(TOP, len(rows)),
                "overlap": overlap_of_top(*leaders),
                "only_from": ", ".join(name for name in leaders[0] if name not in leaders[1]),
                "only_to": ", ".join(name for name in leaders[1] if name not in leaders[0]),
                "rank_correlation": _correlation([(row["rank_from"], row["rank_to"]) for row in rows]),
                "drifting": sum(row["drifts"] for row in rows),
                "trustworthy": is_certain,
            }
        )
    return knobs, pairs


def overlap_of_top(first: Sequence[str], second: Sequence[str]) -> int:
    """Return how many knobs two lists of leaders have in common."""
    return len(set(first) & set(second))


def _pairs(fits: Mapping[Names, Fit]) -> Iterator[tuple[dict[str, str], Fit, Fit]]:
    """Yield the cases of one DBMS that differ in device only, or in workload only."""
    for first, second in combinations(fits, 2):
        (dbms, device, workload), (dbms_2, device_2, workload_2) = first, second
        if dbms == dbms_2 and workload == workload_2:
            yield _case_columns(dbms, "device", workload, device, device_2), fits[first], fits[second]
        elif dbms == dbms_2 and device == device_2:
            yield _case_columns(dbms, "workload", device, workload, workload_2), fits[first], fits[second]


def _case_columns(dbms: str, changed: str, unchanged: str, start: str, end: str) -> dict[str, str]:
    return {"dbms": dbms, "changed": changed, "same": unchanged, "from_case": start, "to_case": end}


def _change(first: Mapping[str, Any], second: Mapping[str, Any], is_certain: bool) -> dict[str, Any]:
    (low, high), (second_low, second_high) = _widen(first), _widen(second)
    is_disjoint = high < second_low or second_high < low
    return {
        "knob": first["knob"],
        "rank_from": first["rank"],
        "rank_to": second["rank"],
        "change": second["rank"] - first["rank"],
        "drifts": bool(is_certain and is_disjoint and (first["above_noise"] or second["above_noise"])),
    }


def _widen(entry: Mapping[str, Any]) -> tuple[float, float]:
    """Return an interval of the rank that holds it though many knobs are compared."""
    rank = entry["rank"]
    return (
        rank - (1 + _WIDER) * (rank - entry["rank_low"]) - _RANKS,
        rank + (1 + _WIDER) * (entry["rank_high"] - rank) + _RANKS,
    )


def _leaders(importance: Sequence[Mapping[str, Any]]) -> list[str]:
    return [entry["knob"] for entry in sorted(importance, key=lambda entry: entry["rank"])[:TOP]]


def _correlation(ranks: Sequence[tuple[int, int]]) -> float | None:
    """Spearman's correlation; None for fewer than three knobs."""
    import numpy as np

    from knobscope.statistics.ranks import correlate_ranks

    return correlate_ranks(*np.array(ranks, float).T) if len(ranks) > 2 else None
