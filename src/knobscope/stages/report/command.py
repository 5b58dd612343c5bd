"""`knobscope report`: renders the page of a study."""

import argparse
import sys
from pathlib import Path

from knobscope.specs import load_study
from knobscope.specs.reading.arguments import add_measured_study, choose_study, list_results
from knobscope.stages.report.page import render_report
from knobscope.study_data.study import MOST_CASES
from knobscope.text.formats import format_size, plural


def _run(args: argparse.Namespace) -> int:
    specs = load_study(choose_study(args), args.root, runnable=False)
    (database,) = [args.database] if args.database else list_results(specs.study.name, "study.duckdb")
    out = args.out or Path(f"{specs.study.name}-report.html")
    page = render_report(database, specs, out, figures=args.figures, traces=args.traces, cases=args.cases)
    print(f"wrote {out} ({format_size(page.size_bytes)}, {plural(page.figures, 'figure')})", file=sys.stderr)
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "report",
        help="render the page of a study",
        description="Render a study as one HTML page: findings first, then effects, ranking, devices and runs. It is "
        "one file, loads nothing from elsewhere, and can be sent to others.",
    )
    add_measured_study(parser)
    parser.add_argument("--database", type=Path, help="the study's DuckDB file; it is only read")
    parser.add_argument(
        "--traces",
        type=Path,
        metavar="DIR",
        help="traces of single runs to draw (default: `traces` next to the database)",
    )
    parser.add_argument("--out", type=Path, help="HTML file to write (default: STUDY-report.html)")
    parser.add_argument(
        "--figures",
        type=Path,
        metavar="DIR",
        help="also write each figure as SVG, with its data as CSV and its query as SQL",
    )
    parser.add_argument(
        "--cases",
        nargs="+",
        metavar="CASE",
        help=f"cases to show with pictures, as DBMS/DEVICE/WORKLOAD (default: all; of more than {MOST_CASES}, those "
        "with the costliest mismatches)",
    )
    parser.set_defaults(run=_run)
