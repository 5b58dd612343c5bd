"""Two studies compared: everything that text, page and JSON tell."""

import dataclasses
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from knobscope import __version__
from knobscope.commands.compare.baselines import Measured, Times, compare_levels, compare_times
from knobscope.commands.compare.budgets import Budgets, compare_budgets
from knobscope.commands.compare.configurations import OtherConfigurations, compare_configurations
from knobscope.commands.compare.effects import EffectPair, Limits, OneSided, OtherDefault, judge, pair_effects
from knobscope.commands.compare.findings import MismatchPair, compare_mismatches
from knobscope.commands.compare.matching import CaseName, CasePair, match_cases, read_matches
from knobscope.commands.compare.points import LackingPoint, find_lacking_points
from knobscope.commands.compare.rankings import Rankings, compare_rankings
from knobscope.commands.compare.reading import StudyTables
from knobscope.commands.compare.setups import Setup, Workloads, compare_setups, compare_workloads
from knobscope.errors import UserError
from knobscope.text.formats import join_words, plural

#: Where a database does not record the thresholds of its study: those of a study that states none.
_FDR, _MIN_EFFECT = 0.05, 0.05


@dataclass(frozen=True)
class Side:
    """One of the two studies: its name, its database, and when it was measured (UTC; None: not recorded)."""

    letter: str
    name: str
    database: str
    first: datetime | None
    last: datetime | None
    runs: int
    cases: list[str]


@dataclass(frozen=True)
class CaseComparison:
    """One case of A and one of B."""

    pair: CasePair
    workloads: Workloads
    times: Times
    levels: list[Measured]
    budgets: Budgets | None
    others: OtherConfigurations
    effects: list[EffectPair]
    one_sided: list[OneSided]
    other_defaults: list[OtherDefault]
    rankings: Rankings
    points: list[LackingPoint]
    mismatches: list[MismatchPair]


@dataclass(frozen=True)
class Comparison:
    """A compared with B; `notes` are what limits the whole comparison, `unmatched` cases without a counterpart.

    `unjudged` are the letters of the studies without any verdict of a rule: their mismatches cannot be compared.
    """

    a: Side
    b: Side
    limits: Limits
    notes: list[str]
    setup: Setup
    cases: list[CaseComparison]
    unmatched_a: list[CaseName]
    unmatched_b: list[CaseName]
    unjudged: list[str]

    @property
    def effects(self) -> list[EffectPair]:
        """The effects of all cases."""
        return [effect for case in self.cases for effect in case.effects]


def compare_studies(a: StudyTables, b: StudyTables, matches: Sequence[str] = ()) -> Comparison:
    """Compare two studies; `matches` are texts A_CASE=B_CASE.

    UserError: such a text names no case, or no case of A belongs to one of B.
    """
    pairs = match_cases(a.cases, b.cases, read_matches(matches, a.cases, b.cases))
    if not pairs:
        have = "; ".join(f"{study.letter} has {', '.join(map(str, study.cases))}" for study in (a, b))
        raise UserError(f"found no case of A that one of B belongs to; expected --match A_CASE=B_CASE, where {have}")
    limits = _limits(a, b)
    paired = [pair_effects(a, b, pair) for pair in pairs]
    judged = judge([effect for case_effects in paired for effect in case_effects.effects], limits)
    devices = {pair.a.device: pair.b.device for pair in pairs}
    unjudged = [study.letter for study in (a, b) if not study.rows["findings"]]
    cases = []
    for pair, case_effects in zip(pairs, paired, strict=True):
        workloads = compare_workloads(a, b, pair)
        times = compare_times(a, b, pair)
        levels = compare_levels(a, b, pair, workloads, times)
        cases.append(
            CaseComparison(
                pair,
                workloads,
                times,
                levels,
                compare_budgets(a, b, pair),
                compare_configurations(a, b, pair, levels[0]),
                [effect for effect in judged if effect.pair == pair],
                case_effects.one_sided,
                case_effects.other_defaults,
                compare_rankings(a, b, pair),
                find_lacking_points(a, b, pair),
                [] if unjudged else compare_mismatches(a, b, pair, devices),
            )
        )
    return Comparison(
        _describe(a),
        _describe(b),
        limits,
        list(_notes(a, b)),
        compare_setups(a, b, pairs),
        cases,
        [case for case in a.cases if case not in {pair.a for pair in pairs}],
        [case for case in b.cases if case not in {pair.b for pair in pairs}],
        unjudged,
    )


def _describe(study: StudyTables) -> Side:
    begins = [run["started_at"] for run in study.rows["runs"] if run["started_at"] is not None]
    first, last = (min(begins), max(begins)) if begins else (None, None)
    runs, cases = len(study.rows["runs"]), [str(case) for case in study.cases]
    return Side(study.letter, study.name, str(study.database), first, last, runs, cases)


def _limits(a: StudyTables, b: StudyTables) -> Limits:
    """Return the stricter of the two studies' thresholds."""
    thresholds: dict[str, list[float]] = {"thresholds.fdr": [], "thresholds.min_effect": []}
    for row in (*a.rows["setup"], *b.rows["setup"]):
        if row["property"] in thresholds:
            thresholds[row["property"]].append(float(row["value"]))
    return Limits(
        min(thresholds["thresholds.fdr"], default=_FDR), max(thresholds["thresholds.min_effect"], default=_MIN_EFFECT)
    )


def _notes(a: StudyTables, b: StudyTables) -> Iterator[str]:
    for study in (a, b):
        if study.missing:
            noun = "table" if len(study.missing) == 1 else "tables"
            names = join_words([f"`{name}`" for name in study.missing])
            yield (
                f"The database of {study.letter} has no {noun} {names}: an earlier version of knobscope wrote it, and "
                "what it does not hold is not compared. `knobscope detect` makes it anew from the same runs."
            )
    begins = [
        {(run["run_id"], run["started_at"]) for run in study.rows["runs"] if run["started_at"] is not None}
        for study in (a, b)
    ]
    if shared := len(begins[0] & begins[1]):
        yield (
            f"{plural(shared, 'run')} of A {'is' if shared == 1 else 'are'} in B, too: what they measured is compared "
            "with itself there, so that differences look smaller and surer than they are."
        )


@dataclass(frozen=True)
class CompareDocument(Comparison):
    """What `knobscope compare` writes; all ratios are natural-log ratios of B to A, or to the reference value.

    Times are ISO 8601 in UTC; what is not known is null.
    """

    knobscope: str


def to_json(comparison: Comparison) -> dict[str, Any]:
    """Return a comparison as JSON can hold it."""
    from pydantic import TypeAdapter

    parts = {field.name: getattr(comparison, field.name) for field in dataclasses.fields(comparison)}
    document = CompareDocument(**parts, knobscope=__version__)
    return dict(TypeAdapter(CompareDocument).dump_python(document, mode="json"))
