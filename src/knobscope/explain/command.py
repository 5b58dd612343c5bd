"""`knobscope explain`: measures mismatches again, and finds their causes on modelled devices by changing the device."""

import argparse
import json
import shutil
import sys
from collections import Counter
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from knobscope.detect import read_findings, write_findings, write_rows
from knobscope.errors import UserError
from knobscope.explain.answering import answer_questions
from knobscope.explain.causes import Answer, judge_finding
from knobscope.explain.experiment import Bench
from knobscope.explain.properties import what_if_devices
from knobscope.explain.questions import ask_questions, count_explaining_runs
from knobscope.processes import follow_pipeline
from knobscope.specs import load_study
from knobscope.specs.arguments import add_study_arguments
from knobscope.tables import WhatIfRow, WhatIfRunRow

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    import duckdb

    follow_pipeline()
    specs = load_study(args.study, args.root)
    explain = specs.study.explain
    if explain is None:
        raise UserError(f"{args.study} has no section `explain`, which says how many effects to explain")
    with duckdb.connect(str(args.database), read_only=True) as connection:
        findings = read_findings(connection)
        questions = ask_questions(findings, specs, connection, explain.findings)
    profiles = {path.stem: path for path in args.devices}
    bench = Bench(specs, args.root, args.store, profiles, explain.repeats)
    print(f"explain: {len(questions)} effects, at most {count_explaining_runs(specs, explain)} runs", file=sys.stderr)
    answers: list[Answer] = []
    runs: list[WhatIfRunRow] = []
    rows: list[WhatIfRow] = []
    for _, group in groupby(sorted(questions, key=lambda one: str(one.case)), key=lambda one: one.case):
        of_case = list(group)
        device = specs.devices[of_case[0].case.device]
        what_ifs = what_if_devices(device)
        found, measured = answer_questions(bench, device, what_ifs, of_case)
        changes = {name: json.dumps(one.change, sort_keys=True) for name, one in what_ifs.items()}
        answers, runs = [*answers, *found], [*runs, *measured]
        rows += [row for answer in found for row in answer.rows(changes)]
    for answer in answers:
        for index in answer.question.findings:
            finding = findings[index]
            rule = specs.rules.get(finding["rule"])
            finding |= judge_finding(answer, rule.about.cause if rule else None, finding["sentence"])
    part = args.out.with_name(args.out.name + ".part")
    shutil.copyfile(args.database, part)
    write_findings(part, findings)
    write_rows(part, {"what_if_runs": runs, "what_ifs": rows})
    part.replace(args.out)
    _tell(answers)
    return 0


def _tell(answers: Sequence[Answer]) -> None:
    for answer in answers:
        print(f"explain: {answer.describe()}", file=sys.stderr)
    counts = Counter(answer.conclusion for answer in answers)
    told = ", ".join(f"{count} {name}" for name, count in counts.items()) or "nothing to explain"
    print(f"explain: {told}", file=sys.stderr)


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "explain",
        help="measure mismatches again, and find their causes by changing a modelled device",
        description="Run the DBMS again with the values of mismatches: what does not show again is withdrawn. On a "
        "modelled device go on to what-if devices, which differ from it in one property: the cause of an effect is the "
        "property whose change removes it. Only for studies with a section `explain`.",
    )
    add_study_arguments(parser)
    parser.add_argument("--database", type=Path, required=True, help="DuckDB file that `detect` wrote; it is only read")
    parser.add_argument("--devices", type=Path, nargs="+", required=True, help="device profiles (JSON)")
    parser.add_argument("--store", type=Path, required=True, help="directory of the run store")
    parser.add_argument("--out", type=Path, required=True, help="DuckDB file to write: the same, and what came out")
    parser.set_defaults(run=_run)
