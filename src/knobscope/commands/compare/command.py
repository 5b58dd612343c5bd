"""`knobscope compare`: prints two studies side by side, or writes that as JSON or as a page."""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from knobscope.cells import to_csv
from knobscope.commands.compare.comparison import Comparison, compare_studies, to_json
from knobscope.commands.compare.page import effect_rows, render_page
from knobscope.commands.compare.reading import find_database, read_study
from knobscope.commands.compare.text import format_comparison
from knobscope.errors import UserError
from knobscope.storage import blame_content, write_json, write_text

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    if args.csv and args.out is None:
        raise UserError("--csv: found no --out; expected --out FILE.html, next to which the data is written")
    databases = [find_database(text) for text in (args.a, args.b)]
    if databases[0].resolve() == databases[1].resolve():
        raise UserError(f"found {databases[0]} twice; expected two studies")
    a, b = (read_study(letter, path) for letter, path in zip("AB", databases, strict=True))
    with blame_content(*databases):
        comparison = compare_studies(a, b, args.match)
        text = json.dumps(to_json(comparison), indent=1) + "\n" if args.json == "-" else format_comparison(comparison)
        wrote = list(_write(comparison, args))
    print(text, end="")
    if wrote:
        print(f"wrote {' and '.join(map(str, wrote))}", file=sys.stderr)
    return 0


def _write(comparison: Comparison, args: argparse.Namespace) -> Iterator[Path]:
    """Write the files that were asked for; yields their paths."""
    if args.json not in (None, "-"):
        write_json(Path(args.json), to_json(comparison))
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
    parser.add_argument("--json", metavar="FILE", help="write all numbers as JSON; - prints them instead of the text")
    parser.add_argument("--out", type=Path, metavar="FILE.html", help="write a page too, which loads nothing else")
    parser.add_argument(
        "--csv", action="store_true", help="with --out: write the data of its figures next to it, as CSV"
    )
    parser.set_defaults(run=_run)
