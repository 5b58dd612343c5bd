"""`knobscope confirm`: puts the causes of mismatches to the test."""

import argparse
import sys
from contextlib import ExitStack
from pathlib import Path

from knobscope.confirm.findings import confirm_findings, names_testable_cause
from knobscope.detect import add_table
from knobscope.devices import open_device
from knobscope.processes import follow_pipeline
from knobscope.specs import load_study
from knobscope.specs.arguments import add_study_arguments
from knobscope.tables import read_table, write_table

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    import duckdb

    follow_pipeline()
    specs = load_study(args.study, args.root, runnable=False)
    findings = read_table([args.findings])
    testable = [row for row in findings.to_dict("records") if names_testable_cause(row)]
    with ExitStack() as stack:
        opened = {
            name: stack.enter_context(open_device(specs.devices[name], args.root, specs.study.name))
            for name in sorted({row["device"] for row in testable} & set(specs.devices))
        }
        connection = stack.enter_context(duckdb.connect(str(args.database), read_only=True))
        rows = confirm_findings(findings, connection, opened, args.seconds)
    write_table(args.out, "findings", rows)
    add_table(args.database, "findings", args.out)
    args.out.touch()  # the database became newer just now, and Snakemake would confirm for ever
    confirmed = [row["confirmed"] for row in rows if names_testable_cause(row)]
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
        description="For each mismatch of a root-cause rule (io_size, io_parallelism, io_sequentiality), repeat the "
        "I/O pattern of its runs with fio on the same device and change the one factor that the rule blames.",
    )
    add_study_arguments(parser)
    parser.add_argument("--database", type=Path, required=True, help="the study's DuckDB file")
    parser.add_argument("--findings", type=Path, required=True, help="table `findings` (parquet)")
    parser.add_argument("--out", type=Path, required=True, help="parquet file to write: the findings, confirmed or not")
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="time per finding, at least five rounds (default %(default)s)",
    )
    parser.set_defaults(run=_run)
