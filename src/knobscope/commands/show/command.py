"""`knobscope show`: prints one run of a study."""

import argparse
import html
from pathlib import Path

from knobscope.commands.show.page import format_run
from knobscope.commands.show.reading import ShowDocument, find_run
from knobscope.documents import add_json_argument, write_document
from knobscope.durable_files import blame_content, write_text
from knobscope.specs.reading.arguments import find_results

_PAGE = (
    '<!doctype html>\n<html lang="en">\n<meta charset="utf-8">\n<title>{title}</title>\n'
    '<pre style="white-space: pre-wrap">{text}</pre>\n</html>\n'
)


def _run(args: argparse.Namespace) -> int:
    stores = _find_stores(args.study)
    with blame_content(*stores, expected="runs that `knobscope measure` stored"):
        shown = find_run(args.run_id, stores)
        text, document = format_run(shown), shown.document()
    if args.html:
        write_text(args.html, _PAGE.format(title=f"run {html.escape(args.run_id)}", text=html.escape(text)))
    if not write_document(args, document) and not args.html:
        print(text, end="")
    return 0


def _find_stores(study: str | None) -> list[Path]:
    """Return the run stores that are meant: of one study, by name or directory of its results, or of all."""
    if study is None:
        return sorted(Path("results").glob("*/store"))
    return [find_results(study, "store")]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "show",
        help="print one run: what ran, how it ended, its I/O",
        description="Print a run of a study, finished or failed: its knobs with the values in force, status and "
        "reason, the last lines of its log, throughput over time, its block requests, and the runs of its block.",
    )
    parser.add_argument("run_id", metavar="RUN_ID", help="id of the run, or how the id begins")
    parser.add_argument("--study", metavar="NAME|DIR", help="study, or directory of its results; else all are searched")
    parser.add_argument("--html", type=Path, metavar="FILE", help="write a page instead of printing")
    add_json_argument(parser, ShowDocument)
    parser.set_defaults(run=_run)
