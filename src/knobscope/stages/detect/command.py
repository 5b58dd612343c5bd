"""`knobscope detect`: builds the study's database and judges it by the mismatch rules."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from knobscope.durable_files import whole_file
from knobscope.specs import VERDICTS, load_study
from knobscope.specs.reading.arguments import add_measured_study, choose_study, list_results
from knobscope.stages.detect.database import StudyFiles, build_database, write_findings
from knobscope.stages.detect.rules import run_rules
from knobscope.study_data.opening import open_study


def _run(args: argparse.Namespace) -> int:
    specs = load_study(choose_study(args), args.root, runnable=False)
    out = args.out or Path(f"{specs.study.name}-detected.duckdb")
    with whole_file(out) as part:
        build_database(_list_files(args, specs.study.name), specs, part)
        with open_study(part, threads=1) as connection:
            findings = run_rules(connection, specs)
        write_findings(part, findings, describe=True)
    print("\n".join([*describe_findings(findings), f"wrote {out}"]), file=sys.stderr)
    return 0


def _list_files(args: argparse.Namespace, study: str) -> StudyFiles:
    """Return the files that were named, or those of the study's results."""
    if args.runs is not None:
        return StudyFiles(args.runs, args.plans or [], args.fits, args.devices)
    return StudyFiles(
        list_results(study, "*/*/*/runs/*"),
        list_results(study, "*/*/*/plan/*.parquet"),
        list_results(study, "*/*/*/fit/*.json", may_be_none=True),
        list_results(study, "devices/*.json"),
    )


def describe_findings(findings: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    """Yield lines for a person: every mismatch, then per rule how often it said what, and what it lacked most."""
    for row in findings:
        if row["verdict"] == "mismatch":
            yield f"{row['rule']}: {row['dbms']}: {row['sentence']}"
    if not findings:
        yield "no rule was asked for, or none had anything to judge"
    for rule in dict.fromkeys(row["rule"] for row in findings):
        rows = [row for row in findings if row["rule"] == rule]
        counts = Counter(row["verdict"] for row in rows)
        yield f"{rule}: " + ", ".join(f"{counts[verdict]} {verdict}" for verdict in VERDICTS)
        lacking = [row["sentence"] for row in rows if row["verdict"] == "insufficient"]
        if lacking:
            yield f"  e.g. {lacking[0]}"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "detect",
        help="find mismatches between DBMS and device",
        description="Put all runs of a study into one DuckDB file, estimate what each knob does there, and judge it by "
        "the mismatch rules that it asks for (docs/reference/rules.md). Every verdict is mismatch, none or "
        "insufficient.",
    )
    add_measured_study(parser)
    parser.add_argument("--runs", type=Path, nargs="+", metavar="DIR", help="block directories")
    parser.add_argument("--plans", type=Path, nargs="+", help="tables `plan` (parquet)")
    parser.add_argument("--fits", type=Path, nargs="*", default=[], help="fits (JSON), below the folder of their case")
    parser.add_argument("--devices", type=Path, nargs="*", default=[], help="device profiles (JSON)")
    parser.add_argument("--out", type=Path, help="DuckDB file to write (default: STUDY-detected.duckdb)")
    parser.set_defaults(run=_run)
