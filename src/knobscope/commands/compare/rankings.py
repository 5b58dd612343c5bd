"""Rankings of both studies: does screening find the same knobs to matter? (docs/evidence/statistics.md)."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from knobscope.commands.compare.matching import CasePair
from knobscope.commands.compare.reading import StudyTables
from knobscope.specs import Case
from knobscope.statistics.drift import TOP, rank_drift
from knobscope.study_data.study import Row


@dataclass(frozen=True)
class RankedBoth:
    """A knob that both rankings have: rank and its 90 % interval in each; `drifts`: the ranks differ beyond chance."""

    knob: str
    rank_a: int
    interval_a: tuple[int, int] | None
    rank_b: int
    interval_b: tuple[int, int] | None
    drifts: bool | None  # None: an interval is not recorded


@dataclass(frozen=True)
class Rankings:
    """Both rankings; where they cannot be compared there are no knobs, and `reason` says why."""

    knobs: list[RankedBoth]
    top: int = 0
    overlap: int = 0
    only_a: str = ""  # first knobs of A alone
    only_b: str = ""
    correlation: float | None = None
    reason: str = ""


def compare_rankings(a: StudyTables, b: StudyTables, pair: CasePair) -> Rankings:
    """Return the ranks of all knobs that both studies ranked, if both rankings can be trusted."""
    sides = ((a, pair.a), (b, pair.b))
    if reasons := [reason for study, case in sides if (reason := _obstacle(study, case))]:
        return Rankings([], reason="; ".join(reasons))
    rows = [sorted(study.of_case("importance", case), key=lambda row: row["rank"]) for study, case in sides]
    has_intervals = all(row["rank_low"] is not None and row["rank_high"] is not None for side in rows for row in side)
    fits = {
        ("", letter, ""): {"trustworthy": True, "importance": _with_intervals(side)}
        for letter, side in zip("AB", rows, strict=True)
    }
    drift, (overlap,) = rank_drift(fits)
    drifting = {row["knob"]: row["drifts"] for row in drift}
    right = {row["knob"]: row for row in rows[1]}
    knobs = [
        _join(row, right[row["knob"]], drifting[row["knob"]], has_intervals) for row in rows[0] if row["knob"] in right
    ]
    return Rankings(
        knobs,
        min(TOP, max(map(len, rows))),
        overlap["overlap"],
        overlap["only_from"],
        overlap["only_to"],
        overlap["rank_correlation"],
        "" if knobs else "the rankings have no knob in common",
    )


def _obstacle(study: StudyTables, case: Case) -> str:
    """Return why the ranking of a case cannot be compared; empty when it can."""
    if not study.of_case("importance", case):
        return f"{study.letter} ranked no knobs"
    fits = study.of_case("fits", case)
    last = max(fits, key=lambda fit: -1 if fit["round"] is None else fit["round"], default=None)
    if last is None:
        return f"{study.letter} does not tell whether its ranking can be trusted"
    if last["prior"] is not None:
        return f"{study.letter} took its ranking from the prior {last['prior']} and measured none"
    if not last["trustworthy"]:
        return f"the ranking of {study.letter} cannot be trusted ({last['reason_trust'] or 'no reason was recorded'})"
    return ""


def _with_intervals(rows: Sequence[Row]) -> list[dict[str, Any]]:
    """Return the rows with intervals; where they are not recorded, ones as wide as can be, so that nothing drifts."""
    return [
        {**row, "rank_low": row["rank_low"] or 1, "rank_high": row["rank_high"] or max(entry["rank"] for entry in rows)}
        for row in rows
    ]


def _join(a: Row, b: Row, drifts: bool, has_intervals: bool) -> RankedBoth:
    return RankedBoth(a["knob"], a["rank"], _interval(a), b["rank"], _interval(b), drifts if has_intervals else None)


def _interval(row: Row) -> tuple[int, int] | None:
    has_interval = row["rank_low"] is not None and row["rank_high"] is not None
    return (row["rank_low"], row["rank_high"]) if has_interval else None
