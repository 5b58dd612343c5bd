"""`knobscope io-knobs STUDY --measure`: text and code say where to look first, pairs of runs decide."""

import argparse
import sys
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from pydantic import Field

from knobscope.commands.io_knobs.odds import add_runs, judge_texts, order_by_doubt
from knobscope.commands.io_knobs.pairs import Comparison, Pairs, count_effort, list_candidates
from knobscope.document_part import Part
from knobscope.specs import Case, StudySpecs, is_factor, load_study
from knobscope.specs.reading.arguments import find_study
from knobscope.stages.characterise import write_profile
from knobscope.stages.detect import IO_RESPONSES
from knobscope.stages.measure import BlockProgress, open_measurer
from knobscope.stages.plan import SweptValue, case_space
from knobscope.statistics.io_responses import Comparison as Score
from knobscope.statistics.io_responses import compare_with_marks
from knobscope.text.formats import format_fold, format_seconds, loosen_units, plural
from knobscope.text.text_table import align

BUDGET = 200


class ValuePart(Part):
    """A value of a knob that was compared with the default."""

    knob: str
    value: str
    pairs: int = Field(description="Runs with the value, each between two of the default.")
    verdict: str = Field(description="`related`, `none`, or `failed`.")
    response: str | None = Field(description="Response with the smallest p value.")
    log_ratio: float | None = Field(description="Natural logarithm of its change; of a share the difference.")
    p_value: float | None = Field(description="p value over all responses: that the value does nothing to the I/O.")
    failure: str = Field(description="Why the value has no runs.")


class KnobPart(Part):
    """How likely a knob is to steer I/O."""

    texts: float | None = Field(description="Log odds by text and code; null: the DBMS says that it does nothing.")
    with_runs: float | None = Field(description="Log odds with what the runs show.")
    is_related: bool
    is_marked: bool = Field(description="Whether its mechanism in spec or catalogue is one of I/O.")


class ScorePart(Part):
    """Compared with the marks of spec and catalogue."""

    precision: float | None
    recall: float | None


class MeasuredCasePart(Part):
    """What text, code and pairs of runs say of the knobs of a case, and what the runs cost."""

    runs: int
    seconds: float = Field(description="Time of these runs, with starts and stops.")
    unmeasured: int = Field(description="Knobs that were not tried within the budget, or have no value to try.")
    false_alarms: int = Field(description="Comparisons of the default with itself that are called related.")
    comparisons_of_default: int
    values: list[ValuePart]
    knobs: dict[str, KnobPart]
    by_texts: ScorePart
    by_runs: ScorePart = Field(description="Of the measured knobs, by the runs alone.")
    together: ScorePart


def measure_cases(args: argparse.Namespace) -> dict[str, dict[str, Any]]:
    """Measure the knobs of all cases of a study, or say what that costs; returns MeasuredCasePart by case."""
    specs = load_study(find_study(args.study), args.root)
    watched = {"watch": sorted({*specs.study.watch, "syscalls", "waits"})}
    specs = replace(specs, study=specs.study.model_copy(update=watched))
    documents: dict[str, dict[str, Any]] = {}
    for case in specs.cases:
        dbms = specs.dbms[case.dbms]
        names = [name for name in case_space(specs, case).levels if not is_factor(name)]
        if args.dry_run:
            _print_cost(specs, case, list_candidates(specs, case, names), args.runs)
            continue
        odds = judge_texts(dbms, names, args.root / "specs/dbms")
        candidates = list_candidates(specs, case, order_by_doubt(odds))
        with_runs = _measure(specs, case, candidates, args)
        documents[str(case)] = _document(specs, case, odds, *with_runs)
    return documents


def _print_cost(specs: StudySpecs, case: Case, candidates: list[list[SweptValue]], budget: int) -> None:
    effort = count_effort(specs, case, candidates, budget)
    values = sum(map(len, candidates))
    print(
        loosen_units(
            f"{case}: {plural(len(candidates[0]), 'knob')} with {plural(values, 'value')} to try; at most "
            f"{plural(effort.runs, 'run')}, about {format_seconds(effort.seconds)}"
        )
    )


def _measure(
    specs: StudySpecs, case: Case, candidates: list[list[SweptValue]], args: argparse.Namespace
) -> tuple[Pairs, list[Comparison], tuple[int, int]]:
    results = Path("results") / specs.study.name
    for name in [case.device, *specs.layout_devices(case.dbms)]:
        profile = results / f"devices/{name}.json"
        if not profile.exists():
            print(f"knobscope: {name} is measured first, into {profile}", file=sys.stderr)
            write_profile(specs.devices[name], args.root, specs.study.name, specs.study.characterise, profile)
    most = count_effort(specs, case, candidates, args.runs).runs
    progress = BlockProgress(f"{case} pairs", most, case_space(specs, case).default)
    profile = results / f"devices/{case.device}.json"
    smallest = specs.study.thresholds.min_effect
    with (
        open_measurer(specs, case, args.root, profile, results / "store", progress) as measurer,
        Pairs(specs, case, measurer, args.runs, smallest).opened() as pairs,
    ):
        comparisons = pairs.compare(candidates)
        false_alarms = pairs.count_false_alarms()
    progress.finish()
    return pairs, comparisons, false_alarms


def _document(
    specs: StudySpecs,
    case: Case,
    odds: Mapping[str, float],
    pairs: Pairs,
    comparisons: list[Comparison],
    false_alarms: tuple[int, int],
) -> dict[str, Any]:
    together = add_runs(odds, comparisons)
    marks = {name: specs.dbms[case.dbms].knobs[name].mechanism != "other" for name in odds}
    tried = {comparison.knob for comparison in comparisons if comparison.verdict != "failed"}
    related = {comparison.knob for comparison in comparisons if comparison.verdict == "related"}
    return {
        "runs": pairs.runs,
        "seconds": pairs.seconds,
        "unmeasured": len(odds.keys() - tried),
        "false_alarms": false_alarms[0],
        "comparisons_of_default": false_alarms[1],
        "values": [_value_part(comparison) for comparison in comparisons],
        "knobs": {
            name: {
                "texts": odds[name],
                "with_runs": together[name],
                "is_related": together[name] > 0,
                "is_marked": marks[name],
            }
            for name in odds
        },
        "by_texts": _score(compare_with_marks(_positive(odds), marks)),
        "by_runs": _score(compare_with_marks({name: name in related for name in tried}, marks)),
        "together": _score(compare_with_marks(_positive(together), marks)),
    }


def _positive(odds: Mapping[str, float]) -> dict[str, bool]:
    return {name: value > 0 for name, value in odds.items()}


def _score(compared: Score) -> dict[str, float | None]:
    return {"precision": compared.precision, "recall": compared.recall}


def _value_part(comparison: Comparison) -> dict[str, Any]:
    change = comparison.change
    return {
        "knob": comparison.knob,
        "value": comparison.value,
        "pairs": comparison.pairs,
        "verdict": comparison.verdict,
        "response": change.response,
        "log_ratio": change.log_ratio,
        "p_value": change.p_value,
        "failure": comparison.failure,
    }


def describe_case(case: str, document: Mapping[str, Any]) -> str:
    """Return what was found about a case as text: the knobs that change the I/O, cost and scores."""
    related = [row for row in document["values"] if row["verdict"] == "related"]
    table = [[row["knob"], row["value"], *_describe_change(row), f"{row['pairs']} pairs"] for row in related]
    tried = {row["knob"] for row in document["values"] if row["verdict"] != "failed"}
    failed = sum(row["verdict"] == "failed" for row in document["values"])
    lines = [
        f"{case}: {plural(len(tried), 'knob')} tried in {plural(document['runs'], 'run')}, "
        f"{format_seconds(document['seconds'])}; {len(related)} of them change the I/O, {plural(failed, 'value')} did "
        f"not run, {plural(document['unmeasured'], 'knob')} not tried",
        f"the default compared with itself: {document['false_alarms']} of {document['comparisons_of_default']} called "
        "related",
        *(
            f"{how}: {_describe_score(document[key])}"
            for key, how in {
                "by_texts": "by text and code",
                "by_runs": "by these runs alone",
                "together": "by text, code and runs",
            }.items()
        ),
    ]
    return loosen_units("\n".join([*([align(table)] if table else []), *lines]))


def _describe_change(row: Mapping[str, Any]) -> Iterable[str]:
    change = row["log_ratio"]
    is_share = row["response"].endswith("_share")
    return (
        IO_RESPONSES[row["response"]],
        f"{change:+.2f}" if is_share else format_fold(change),
        f"p = {row['p_value']:.1g}",
    )


def _describe_score(score: Mapping[str, float | None]) -> str:
    return ", ".join(f"{name} {'–' if x is None else format(x, '.2f')}" for name, x in score.items())


def add_measuring_arguments(parser: argparse.ArgumentParser) -> None:
    """Add `--measure`, and what belongs to it."""
    parser.add_argument(
        "--measure",
        action="store_true",
        help="measure pairs of runs for each knob of the study, the most doubtful by text and code first, until they "
        "show a change of I/O or none; a call that was interrupted continues",
    )
    parser.add_argument(
        "--runs", type=int, metavar="N", help=f"runs of each case at most, with --measure or -n (default: {BUDGET})"
    )
    parser.add_argument("-n", "--dry-run", action="store_true", help="only say what --measure would cost")
