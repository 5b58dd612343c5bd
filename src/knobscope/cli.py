"""The command line: one subcommand per stage, and tools for data you already have."""

import argparse
import importlib
import sys
from collections.abc import Sequence

from knobscope import __version__
from knobscope.errors import UserError

__all__ = ["build_parser", "main"]

#: Modules that add subcommands, in the order of the help text. They import heavy packages only when they run.
_COMMANDS = [
    "knobscope.specs.command",
    "knobscope.doctor.command",
    "knobscope.introspect.command",
    "knobscope.probe_values.command",
    "knobscope.plan.command",
    "knobscope.characterise.command",
    "knobscope.devices.command",
    "knobscope.prepare.command",
    "knobscope.measure.command",
    "knobscope.select.command",
    "knobscope.tune.command",
    "knobscope.detect.command",
    "knobscope.confirm.command",
    "knobscope.report.command",
    "knobscope.watch.command",
    "knobscope.trace.command",
    "knobscope.detect.io_command",
    "knobscope.models.command",
    "knobscope.export.command",
    "knobscope.importing.command",
    "knobscope.replay",
    "knobscope.rank",
    "knobscope.trend",
]


def build_parser() -> argparse.ArgumentParser:
    """Return the parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="knobscope",
        description="Finds the DBMS knobs that matter on a storage device, and where DBMS and device do not fit each "
        "other. A study runs with `snakemake`; each of its stages is a command here.",
    )
    parser.add_argument("--version", action="version", version=f"knobscope {__version__}")
    subparsers = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for module in _COMMANDS:
        importlib.import_module(module).add_parser(subparsers)
    return parser


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; returns its exit code: 0 done, 1 failed, 2 wrong input."""
    args = build_parser().parse_args(arguments)
    try:
        return int(args.run(args))
    except UserError as error:
        print(f"knobscope: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("knobscope: interrupted", file=sys.stderr)
        return 130
