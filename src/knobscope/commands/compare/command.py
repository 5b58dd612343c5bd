"""`knobscope compare`: prints two studies side by side, or writes that as JSON or as a page."""

import argparse
import sys
from collections.abc import Iterator
from pathlib import Path

from knobscope.cells import to_csv
from knobscope.commands.compare.comparison import CompareDocument, Comparison, compare_studies, to_json
from knobscope.commands.compare.page import effect_rows, render_page
from knobscope.commands.compare.reading import find_database, read_study
from knobscope.commands.compare.text import format_comparison
from knobscope.documents import add_json_argument, write_document
from knobscope.durable_files import blame_content, write_text
from knobscope.errors import UserError
from knobscope.text.formats import join_words


def _run(args: argparse.Namespace) -> int:
    if args.csv and args.out is None:
        raise UserError("--csv: found no --out; expected --out FILE.html, next to which the data is written")
    databases = [find_database(text) for text in (args.a, args.b)]
    if databases[0].resolve() == databases[1].resolve():
        raise UserError(f"found {databases[0]} twice; expected two studies")
    a, b = (read_study(letter, path) for letter, path in zip("AB", databases, strict=True))
    with blame_content(*databases):
        comparison = compare_studies(a, b, args.match)
        text = format_comparison(comparison)
        wrote = list(_write(comparison, args))
    if not write_document(args, to_json(comparison)):
        print(text, end="")
    if wrote:
        print(f"wrote {join_words([str(path) for path in wrote])}", file=sys.stderr)
    return 0


def _write(comparison: Comparison, args: argparse.Namespace) -> Iterator[Path]:
    """Write the files that were asked for; yields their paths."""
    if args.json not in (None, "-"):
        yield Path(args.json)
    if args.out:
        write_text(args.out, render_page(comparison))
        yield args.out
    if args.csv:
        write_text(args.out.with_suffix(".csv"), to_csv(effect_rows(comparison.effects)))
        yield args.out.with_suffix(".csv")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "compare",
        help="two studies side by side: set-ups, speed, effects of knobs, rankings, mismatches",
        description="Compare two finished studies, of two devices, kernels or versions, or before and after a change: "
        "what differs between the set-ups, how fast the default configuration is in both, which effects of knobs "
        "differ beyond noise, how far the rankings agree, and which mismatches are in one only. "
        "docs/how-to/comparing.md explains how to read it.",
    )
    for name in ("a", "b"):
        parser.add_argument(
            name,
            metavar=name.upper(),
            help="study: the folder of its results, its DuckDB file, or its name in results; it is only read",
        )
    parser.add_argument(
        "--match",
        action="append",
        default=[],
        metavar="A_CASE=B_CASE",
        help="compare these two cases, each DBMS/DEVICE/WORKLOAD; may be repeated. Cases with equal names are matched "
        "by themselves, and so are others where just one can be meant",
    )
    add_json_argument(parser, CompareDocument, may_be_file=True)
    parser.add_argument("--out", type=Path, metavar="FILE.html", help="write a page too, which loads nothing else")
    parser.add_argument(
        "--csv", action="store_true", help="with --out: write the data of its figures next to it, as CSV"
    )
    parser.set_defaults(run=_run)
