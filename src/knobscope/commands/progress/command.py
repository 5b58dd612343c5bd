"""`knobscope progress`: shows how far a study is, again and again until it is finished."""

import argparse
import os
import sys
import time
from pathlib import Path

from knobscope.commands.progress.page import format_progress
from knobscope.commands.progress.reading import ProgressDocument, Results
from knobscope.documents import add_json_argument, write_document
from knobscope.specs import load_study
from knobscope.specs.reading.arguments import add_study_name, find_study
from knobscope.workflow.forecast import describe_whole

_CLEAR = b"\x1b[H\x1b[J"
_EVERY_S = 2.0


def _run(args: argparse.Namespace) -> int:
    specs = load_study(find_study(args.study), args.root, runnable=False)
    results = Results(specs, Path("results") / specs.study.name)
    whole = describe_whole(specs)
    is_screen = sys.stdout.isatty() and not (args.once or args.json)
    try:
        while True:
            progress = results.read()
            if is_screen:
                os.write(sys.stdout.fileno(), _CLEAR)  # what is printed is text, whose control characters are shown
            if not write_document(args, progress.document(specs.study.name)):
                print(format_progress(specs, progress, whole), flush=True)
            if progress.report or not is_screen:
                return 0
            time.sleep(_EVERY_S)
    except KeyboardInterrupt:
        return 0  # the usual way to leave; the study goes on


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "progress",
        help="show how far a study is, while it runs",
        description="Show how far a study is: runs done, planned and failed by case, the last run, and the time left. "
        "In a terminal the screen is drawn anew every two seconds until the report is there; Ctrl-C leaves, and the "
        "study goes on. It only reads, and may be called from another terminal, or when no Snakemake runs.",
    )
    add_study_name(parser)
    parser.add_argument("--once", action="store_true", help="print once, as is done when the output is no terminal")
    add_json_argument(parser, ProgressDocument)
    parser.set_defaults(run=_run)
