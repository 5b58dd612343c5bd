"""`knobscope remeasure`: measures mismatches again, and finds their causes by changing the device."""

import argparse
import shutil
import sys
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import Device, StudySpecs, load_study
from knobscope.specs.reading.arguments import add_measured_study, choose_study, list_results
from knobscope.stages.detect import (
    complete_fastest,
    list_winners,
    read_findings,
    read_rows,
    replace_effects,
    write_findings,
    write_rows,
)
from knobscope.stages.remeasure.answering import answer_questions, answer_with_delays
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.delays import DelayedAnswer
from knobscope.stages.remeasure.experiment import Bench
from knobscope.stages.remeasure.fastest import list_fastest
from knobscope.stages.remeasure.judging import judge_finding
from knobscope.stages.remeasure.properties import layered_devices, what_if_devices
from knobscope.stages.remeasure.publishing import find_same_effect, list_new_effects, qualify_gap, restate_finding
from knobscope.stages.remeasure.questions import (
    Question,
    ask_fastest,
    ask_headline,
    ask_questions,
    is_modelled,
    what_if_number,
)
from knobscope.stages.remeasure.settling import limit_penalty, settle_finding
from knobscope.study_data.opening import open_study
from knobscope.tables import FastestRow, SensitivityRow, WhatIfRow, WhatIfRunRow, read_document, select_columns
from knobscope.tables.detection import EffectRow, FindingRow
from knobscope.text.formats import plural
from knobscope.text.sentences import Sentences

#: What the stage changes of a finding.
_JUDGED = {
    "verdict", "confirmed", "confirmation", "sentence", "cause", "effect", "effect_low", "effect_high", "penalty",
    "evidence",
}  # fmt: skip


class _Remeasured(TypedDict):
    """What came out on one device (JSON); findings by their position in the table."""

    findings: dict[str, FindingRow]
    what_if_runs: list[WhatIfRunRow]
    what_ifs: list[WhatIfRow]
    sensitivities: list[SensitivityRow]
    fastest: list[FastestRow]
    effects: NotRequired[list[EffectRow]]


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    specs = load_study(choose_study(args), args.root, runnable=False)
    if args.remeasured is None:  # on a cluster this node may have no other device
        specs = load_study(choose_study(args), args.root, runnable={args.device, *specs.dbms})
    _complete(args, specs.study.name)
    with open_study(args.database) as connection:
        findings = read_findings(connection)
        if args.remeasured is not None:
            picked, winners = read_rows(connection, FastestRow, "fastest"), [*list_winners(connection, specs)]
            return _join(args, findings, picked, winners)
        remeasure = specs.study.remeasure
        if args.device not in specs.devices:
            raise UserError(f"--device {args.device}: expected one of {', '.join(specs.devices)}")
        questions = ask_questions(findings, specs, connection, remeasure.findings, what_if_number(specs))
        questions += ask_headline(specs, connection, questions)
        questions += ask_fastest(specs, connection)
    of_device = [question for question in questions if question.case.device == args.device]
    profiles = {path.stem: path for path in args.devices}
    if args.device not in profiles or args.store is None:
        raise UserError(f"--device {args.device} needs --store, and the profile of this device among --devices")
    bench = Bench(specs, args.root, args.store, profiles, remeasure.repeats)
    if of_device:
        summary = f"{len(of_device)} of {plural(len(questions), 'configuration')}"
        print(f"remeasure {args.device}: {summary}", file=sys.stderr)
    everything, runs = _answer(bench, specs.devices[args.device], of_device)
    answers = [answer for answer in everything if answer.question.risk is None]
    shares = [row for answer in answers for row in answer.rows()]
    delayed = [answer for answer in answers if isinstance(answer, DelayedAnswer)]
    sensitivities = [row for answer in delayed for row in answer.list_sensitivities()]
    fastest = list_fastest(specs, everything, args.out.parent)
    tables = {"what_if_runs": runs, "what_ifs": shares, "sensitivities": sensitivities, "fastest": fastest}
    tables["effects"] = list_new_effects(answers)
    write_sealed(args.out, {"findings": _judge(specs, answers, findings), **tables})
    _tell(answers)
    return 0


def _judge(specs: StudySpecs, answers: Sequence[Answer], findings: Sequence[FindingRow]) -> dict[int, FindingRow]:
    """Return what answers change of findings, by their positions."""
    judged: dict[int, FindingRow] = {}
    sentences = Sentences(specs.dbms)
    gaining: set[str] = set()  # configurations of which a costlier finding says what they would gain
    for answer in answers:
        for index in answer.question.findings:
            is_first = answer.slower not in gaining
            judged[index] = _judge_one(answer, findings[index], specs, sentences, says_gains=is_first)
            if (gains := answer.describe_gains()) and gains in judged[index]["sentence"]:
                gaining.add(answer.slower)
        for index in set(find_same_effect(answer, findings)).difference(answer.question.findings):
            found = findings[index]
            if answer.is_gone:
                judged[index] = {"sentence": f"{found['sentence']} The effect did not reproduce in new runs."}
            elif restated := restate_finding(answer, specs.rules.get(found["rule"]), found, sentences):
                judged[index] = select_columns(FindingRow, _JUDGED, restated)
    return judged


def _judge_one(
    answer: Answer, found: FindingRow, specs: StudySpecs, sentences: Sentences, *, says_gains: bool
) -> FindingRow:
    """Return the columns of a finding that an answer may change."""
    rule = specs.rules.get(found["rule"])
    finding: FindingRow = {**found, **restate_finding(answer, rule, found, sentences)}
    cause = rule.about.cause if rule else None
    if finding["verdict"] != found["verdict"]:  # the new runs leave nothing to explain
        outcome: FindingRow = {"confirmed": "not_tested", "confirmation": answer.describe()}
    elif finding["verdict"] == "insufficient" and cause is not None:
        outcome = settle_finding(answer, cause, finding)
    else:
        outcome = judge_finding(answer, cause, finding["sentence"], says_gains=says_gains)
        if rule and cause and rule.about.penalty == "io" and outcome.get("confirmed") == "yes":
            outcome |= limit_penalty(answer, cause, {**finding, **outcome})
    return select_columns(FindingRow, _JUDGED, {**finding, **outcome})


def _complete(args: argparse.Namespace, study: str) -> None:
    """Take what is not given from the results of the study."""
    if args.database is None:
        (args.database,), (store,) = list_results(study, "study.duckdb"), list_results(study, "store")
        args.store, args.devices = args.store or store, args.devices or list_results(study, "devices/*.json")
    ending = "remeasured.duckdb" if args.device is None else f"remeasured-{args.device}.json"
    args.out = args.out or Path(f"{study}-{ending}")


def _answer(bench: Bench, device: Device, questions: Sequence[Question]) -> tuple[list[Answer], list[WhatIfRunRow]]:
    """Return the answers to questions of a device, case by case, with all runs."""
    answers: list[Answer] = []
    runs: list[WhatIfRunRow] = []
    for _, of_case in groupby(
        sorted(questions, key=lambda question: str(question.case)), key=lambda question: question.case
    ):
        if is_modelled(device):
            devices = {**what_if_devices(device), **layered_devices(device)}
            modelled, measured = answer_questions(bench, device, devices, list(of_case))
            answers += modelled
        else:
            delayed, measured = answer_with_delays(bench, device, list(of_case))
            answers += delayed
        runs += measured
    return answers, runs


def _join(
    args: argparse.Namespace, findings: list[FindingRow], picked: list[FastestRow], winners: list[FastestRow]
) -> int:
    """Write the database with what came out on each device."""
    remeasured = [read_document(file, _Remeasured) for file in args.remeasured]
    for of_device in remeasured:
        for index, judged in of_device["findings"].items():
            findings[int(index)] |= select_columns(FindingRow, judged.keys() & _JUDGED, judged)
    what_ifs: list[WhatIfRow] = [row for of_device in remeasured for row in of_device["what_ifs"]]
    findings = [qualify_gap(finding, what_ifs) for finding in findings]
    tables: dict[str, list[Mapping[str, Any]]] = {
        "what_if_runs": [row for of_device in remeasured for row in of_device["what_if_runs"]],
        "what_ifs": [*what_ifs],
        "sensitivities": [row for of_device in remeasured for row in of_device["sensitivities"]],
    }
    measured = [row for of_device in remeasured for row in of_device["fastest"]]
    tables["fastest"] = [*complete_fastest(picked, measured, winners)]
    part = args.out.with_name(args.out.name + ".part")
    shutil.copyfile(args.database, part)
    write_findings(part, findings)
    write_rows(part, tables, replaced=["fastest"])
    replace_effects(part, [row for of_device in remeasured for row in of_device.get("effects", [])])
    part.replace(args.out)
    return 0


def _tell(answers: Sequence[Answer]) -> None:
    for answer in answers:
        print(f"remeasure: {answer.describe()}", file=sys.stderr)
    counts = Counter(answer.conclusion for answer in answers)
    summary = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing to measure again"
    print(f"remeasure: {summary}", file=sys.stderr)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "remeasure",
        help="measure mismatches again, and find their causes by changing the device",
        description="Run the DBMS again with the values of mismatches: mismatches that do not reproduce are refuted. "
        "On a "
        "modelled device go on to what-if devices, which differ from it in one property: the cause of an effect is the "
        "property whose change removes it. On another device, where the study asks for it, requests are made slower: "
        "that shows what a setting waits for. Section `remeasure` of the study sets how many effects. "
        "Each device is measured on its own machine "
        "(--device), and --remeasured joins the answers.",
    )
    add_measured_study(parser)
    parser.add_argument("--database", type=Path, help="DuckDB file that `detect` wrote; it is only read")
    parser.add_argument("--devices", type=Path, nargs="+", default=[], help="profiles of all devices (JSON)")
    parser.add_argument("--store", type=Path, help="directory of the run store")
    parts = parser.add_mutually_exclusive_group(required=True)
    parts.add_argument("--device", help="measure findings on this device, and write what came out, for --remeasured")
    parts.add_argument(
        "--remeasured", type=Path, nargs="+", metavar="FILE", help="measure nothing: join what --device wrote"
    )
    parser.add_argument(
        "--out",
        type=Path,
        help="with --device a JSON file; with --remeasured a DuckDB file: the same database, and what came out "
        "(default: STUDY-remeasured-DEVICE.json, STUDY-remeasured.duckdb)",
    )
    parser.set_defaults(run=_run)
