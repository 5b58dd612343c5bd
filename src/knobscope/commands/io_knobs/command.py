"""`knobscope io-knobs`: which knobs of a finished study are I/O-related, and whether the specs say the same."""

import argparse
from collections.abc import Hashable
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from knobscope.commands.io_knobs.measuring import (
    BUDGET,
    MeasuredCasePart,
    add_measuring_arguments,
    describe_case,
    measure_cases,
)
from knobscope.document_part import Part
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import load_study
from knobscope.specs.reading.arguments import add_study_name, find_study
from knobscope.stages.detect.io_related import IO_RESPONSES, io_marks_comparison
from knobscope.statistics.io_responses import Comparison
from knobscope.study_data.opening import open_study
from knobscope.tables.json_schema import RowSchema
from knobscope.tables.selection import IoRelatedRow


class ComparisonPart(Part):
    """The knobs that change the I/O, compared with those that the spec marks."""

    knobs: int = Field(description="Knobs that were tested.")
    precision: float | None
    recall: float | None
    found: list[str] = Field(description="Knobs that change the I/O.")
    marked: list[str] = Field(description="Knobs whose mechanism in the spec is one of I/O.")
    missed: list[str] = Field(description="Marked, and not found.")
    unexpected: list[str] = Field(description="Found, and not marked.")


class IoKnobsDocument(Part):
    """What `knobscope io-knobs` writes."""

    study: str
    comparison: dict[str, ComparisonPart] = Field(description="By DBMS.")
    tests: list[Annotated[dict[str, Any], RowSchema(IoRelatedRow)]] = Field(description="Rows of table `io_related`.")
    measured: dict[str, MeasuredCasePart] | None = Field(
        default=None, description="With `--measure`, by case; `comparison` and `tests` are empty then."
    )


def _run(args: argparse.Namespace) -> int:
    if args.measure or args.dry_run:
        return _run_measuring(args)
    if args.runs is not None:
        raise UserError("--runs: found no --measure; expected --measure, or -n, which says what that would cost")
    study = load_study(find_study(args.study), args.root, runnable=False).study
    database = args.database or Path("results") / study.name / "study.duckdb"
    with open_study(database) as connection:
        rows = connection.execute("FROM io_related ORDER BY dbms, device, workload, q_value, knob").df()
        compared = io_marks_comparison(connection)
    if rows.empty:
        raise UserError(f"{database} holds no screening runs with an I/O profile, so no knob could be tested")
    tests = rows.astype(object).where(rows.notna(), None).to_dict("records")
    comparison = {dbms: _figures(marks) for dbms, marks in compared.items()}
    if not write_document(args, {"study": study.name, "comparison": comparison, "tests": tests}):
        related = [_describe_test(row) for row in tests if row["verdict"] == "related"]
        lines = [*related, *(_describe_marks(dbms, marks) for dbms, marks in compared.items())]
        print("\n".join(lines or ["no knob could be tested: too few runs of screening, or none with another value"]))
    return 0


def _run_measuring(args: argparse.Namespace) -> int:
    args.runs = BUDGET if args.runs is None else args.runs
    if args.runs < 1:
        raise UserError(f"--runs is {args.runs}; expected at least 1")
    if args.dry_run and args.json is not None:
        raise UserError("--json: found --dry-run, which has no document; expected one of them")
    follow_pipeline()
    measured = measure_cases(args)
    if args.dry_run:
        return 0
    document = {"study": find_study(args.study).stem, "comparison": {}, "tests": [], "measured": measured}
    if not write_document(args, document):
        print("\n\n".join(describe_case(case, of_case) for case, of_case in measured.items()))
    return 0


def _figures(marks: Comparison) -> dict[str, Any]:
    names = ("knobs", "precision", "recall", "found", "marked", "missed", "unexpected")
    return {name: getattr(marks, name) for name in names}


def _describe_test(row: dict[Hashable, Any]) -> str:
    case = f"{row['dbms']}/{row['device']}/{row['workload']}"
    response = IO_RESPONSES.get(row["response"], row["response"])
    return (
        f"{case}  {row['knob']}: {response} ({100 * row['explained_share']:.0f} % explained, q = {row['q_value']:.2g})"
    )


def _describe_marks(dbms: str, marks: Comparison) -> str:
    figures = {"precision": marks.precision, "recall": marks.recall}
    shown = ", ".join(f"{name} {'-' if x is None else format(x, '.3f')}" for name, x in figures.items())
    return f"{dbms}: {marks.knobs} knobs tested, {len(marks.found)} related, {len(marks.marked)} marked: {shown}"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "io-knobs",
        help="show which knobs of a study change the I/O, with precision and recall",
        description="Show which knobs of a finished study explain a significant part of the I/O profile (table "
        "`io_related`), and compare them with the mechanisms that the specs mark: precision and recall. With --measure "
        "no finished study is needed: each knob of the study is run in pairs with the default configuration, and is "
        "I/O-related when I/O calls, waits or counts of the device change beyond noise. Text and code of the DBMS, "
        "judged by what is known of other DBMSs, decide which knobs are measured first, and of those that the runs do "
        "not reach.",
    )
    add_study_name(parser)
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help="the study's DuckDB file (default: results/STUDY/study.duckdb)"
    )
    add_measuring_arguments(parser)
    add_json_argument(parser, IoKnobsDocument, may_be_file=True)
    parser.set_defaults(run=_run)
