"""`knobscope confirm`: puts the causes of mismatches to the test."""

import argparse
import shutil
import sys
from contextlib import ExitStack
from pathlib import Path

from knobscope.confirm.findings import blamed_cause, confirm_findings
from knobscope.detect import read_findings, whole_database, write_findings
from knobscope.devices import open_device
from knobscope.processes import follow_pipeline
from knobscope.specs import load_study
from knobscope.specs.arguments import add_study_arguments

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    import duckdb

    follow_pipeline()
    specs = load_study(args.study, args.root, runnable=False)
    with ExitStack() as stack:
        connection = stack.enter_context(duckdb.connect(str(args.database), read_only=True))
        findings = read_findings(connection)
        testable = {row["device"] for row in findings if blamed_cause(row, specs.rules) is not None}
        opened = {
            name: stack.enter_context(open_device(specs.devices[name], args.root, specs.study.name))
            for name in sorted(testable & set(specs.devices))
        }
        rows = confirm_findings(findings, specs.rules, connection, opened, args.seconds)
    with whole_database(args.out) as part:
        shutil.copyfile(args.database, part)
        write_findings(part, rows)
    confirmed = [row["confirmed"] for row in rows if blamed_cause(row, specs.rules) is not None]
    print(
        f"confirm {specs.study.name}: of {len(confirmed)} mismatches with a cause to test, {confirmed.count('yes')} "
        f"confirmed, {confirmed.count('no')} not, {confirmed.count('not_tested')} not tested",
        file=sys.stderr,
    )
    return 0


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "confirm",
        help="put the causes of mismatches to the test with fio",
        description="For each mismatch of a rule that blames a factor of the I/O, repeat the I/O pattern of its runs "
        "with fio on the same device and change that factor alone. Write the study's database with what came out.",
    )
    add_study_arguments(parser)
    parser.add_argument("--database", type=Path, required=True, help="DuckDB file that `detect` wrote; it is only read")
    parser.add_argument(
        "--out", type=Path, required=True, help="DuckDB file to write: the same, its findings confirmed or not"
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="time per finding, at least five rounds (default %(default)s)",
    )
    parser.set_defaults(run=_run)
