"""`knobscope io-knobs`: which knobs of a finished study are I/O-related, and whether the specs say the same."""

import argparse
from pathlib import Path
from typing import Any

from knobscope.errors import UserError
from knobscope.specs import load_study
from knobscope.specs.reading.arguments import add_study_name, find_study
from knobscope.stages.detect.io_related import IO_RESPONSES, io_marks_comparison
from knobscope.storage import write_json
from knobscope.study_data.opening import open_study

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    study = load_study(find_study(args.study), args.root, runnable=False).study
    database = args.database or Path("results") / study.name / "study.duckdb"
    with open_study(database) as connection:
        rows = connection.execute("FROM io_related ORDER BY dbms, device, workload, q_value, knob").df()
        compared = io_marks_comparison(connection)
    if rows.empty:
        raise UserError(f"{database} holds no screening runs with an I/O profile, so no knob could be tested")
    for row in rows[rows["verdict"] == "related"].itertuples():
        case = f"{row.dbms}/{row.device}/{row.workload}"
        response = IO_RESPONSES.get(row.response, row.response)
        print(f"{case}  {row.knob}: {response} ({100 * row.explained_share:.0f} % explained, q = {row.q_value:.2g})")
    result: dict[str, Any] = {}
    for dbms, marks in compared.items():
        figures = {"precision": marks.precision, "recall": marks.recall}
        shown = ", ".join(f"{name} {'-' if x is None else format(x, '.3f')}" for name, x in figures.items())
        print(f"{dbms}: {marks.knobs} knobs tested, {len(marks.found)} related, {len(marks.marked)} marked: {shown}")
        lists = {"found": marks.found, "marked": marks.marked, "missed": marks.missed, "unexpected": marks.unexpected}
        result[dbms] = {"knobs": marks.knobs, **figures, **lists}
    if args.json is not None:
        tests = rows.astype(object).where(rows.notna(), None).to_dict("records")
        write_json(args.json, {"study": study.name, "comparison": result, "tests": tests})
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "io-knobs",
        help="show which knobs of a finished study change the I/O, with precision and recall",
        description="Show which knobs of a finished study explain a significant part of the I/O profile (table "
        "`io_related`), and compare them with the mechanisms that the specs mark: precision and recall.",
    )
    add_study_name(parser)
    parser.add_argument(
        "--database", type=Path, metavar="FILE", help="the study's DuckDB file (default: results/STUDY/study.duckdb)"
    )
    parser.add_argument("--json", type=Path, metavar="OUT", help="write all tests and the comparison here")
    parser.set_defaults(run=_run)
