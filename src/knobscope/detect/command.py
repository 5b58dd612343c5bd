"""`knobscope detect`: builds the study's database and judges it by the mismatch rules."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.detect.database import StudyFiles, add_table, build_database
from knobscope.detect.rules import VERDICTS, run_rules
from knobscope.specs import load_study
from knobscope.specs.arguments import add_study_arguments
from knobscope.tables import write_table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["add_parser", "describe_findings"]


def _run(args: argparse.Namespace) -> int:
    import duckdb

    specs = load_study(args.study, args.root, runnable=False)
    files = StudyFiles(args.runs, args.plans, args.fits, args.devices)
    build_database(files, specs, args.database)
    with duckdb.connect(str(args.database), read_only=True) as connection:
        findings = run_rules(connection, args.rules, specs.study.thresholds, specs.study.rules)
    rows = findings.astype(object).where(findings.notna(), None).assign(confirmed="not_tested")
    write_table(args.out, "findings", rows.to_dict("records"))
    add_table(args.database, "findings", args.out)
    print("\n".join(describe_findings(findings)), file=sys.stderr)
    return 0


def describe_findings(findings: "pd.DataFrame") -> Iterator[str]:
    """Yield lines for a person: every mismatch, then per rule how often it said what, and what it lacked most."""
    for row in findings[findings["verdict"] == "mismatch"].itertuples():
        yield f"{row.rule}: {row.dbms}: {row.sentence}"
    for rule, rows in findings.groupby("rule", sort=False):
        counts = rows["verdict"].value_counts()
        yield f"{rule}: " + ", ".join(f"{counts.get(verdict, 0)} {verdict}" for verdict in VERDICTS)
        lacking = rows.loc[rows["verdict"] == "insufficient", "sentence"]
        if len(lacking):
            yield f"  e.g. {lacking.iloc[0]}"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "detect",
        help="find mismatches between DBMS and device",
        description="Put all runs of a study into one DuckDB file, estimate what each knob does there, and judge it by "
        "the mismatch rules (one SQL file each). Every verdict is mismatch, none or insufficient.",
    )
    add_study_arguments(parser)
    parser.add_argument("--runs", type=Path, nargs="+", required=True, metavar="DIR", help="block directories")
    parser.add_argument("--plans", type=Path, nargs="+", required=True, help="tables `plan` (parquet)")
    parser.add_argument("--fits", type=Path, nargs="*", default=[], help="fits (JSON), below the folder of their case")
    parser.add_argument("--devices", type=Path, nargs="*", default=[], help="device profiles (JSON)")
    parser.add_argument("--rules", type=Path, default=Path("rules/mismatch"), help="folder of the rules (SQL)")
    parser.add_argument("--database", type=Path, required=True, help="DuckDB file to write")
    parser.add_argument("--out", type=Path, required=True, help="table `findings` to write (parquet)")
    parser.set_defaults(run=_run)
