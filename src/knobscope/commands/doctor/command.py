"""`knobscope doctor`: lists what this machine can run, what is missing, and how to get it."""

import argparse
from dataclasses import asdict
from pathlib import Path

from knobscope.commands.doctor.checks import Finding, examine
from knobscope.commands.doctor.devices import examine_study
from knobscope.commands.doctor.loads import try_loads
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.specs.reading.arguments import find_spec


def _run(args: argparse.Namespace) -> int:
    specs = args.root / "specs"
    if not specs.is_dir():
        raise UserError(f"{specs} does not exist; call it in a checkout, or give --root")
    if args.study is None:
        if args.run_loads:
            raise UserError("--load tries the loads of a study; expected its name, too")
        findings = examine(specs)
    else:
        examine_case = try_loads if args.run_loads else examine_study
        findings = examine_case(find_spec("study", args.study, specs / "studies"), args.root)
    if not write_document(args, [asdict(finding) for finding in findings]):
        for finding in findings:
            print(_describe(finding))
    has_dbms = args.study is not None or any(finding.usable for finding in findings if finding.group == "DBMS")
    lacking = [finding.name for finding in findings if finding.required and not finding.usable]
    return 0 if has_dbms and not lacking else 1


def _describe(finding: Finding) -> str:
    mark = "ok     " if finding.usable else "REQUIRED" if finding.required else "missing"
    return f"{mark:8} {finding.group:9} {finding.name:18} {' '.join(finding.text.split())}"


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "doctor",
        help="list what this machine can run, and how to get what is missing",
        description="Try everything a study may need, a line each: DBMSs of specs/dbms with the version found, load "
        "generators, Java, fio, Slurm, the BPF monitor, memory limits, namespaces, loop devices. A line says how to "
        "get what is missing. Exit code 0 when a study can run (Java, load client, fio and at least one DBMS are "
        "there), else 1. With STUDY, bring up each device that it emulates, as its runs will, and remove it again; "
        "with --load, try its load generators.",
    )
    parser.add_argument(
        "study", metavar="STUDY", nargs="?", help="study YAML, or its name: can its devices be used here?"
    )
    parser.add_argument(
        "--load",
        action="store_true",
        dest="run_loads",
        help="with STUDY: load the data of each case, and measure its default configuration once; stores no run",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout whose specs are looked at")
    add_json_argument(parser, list[Finding])
    parser.set_defaults(run=_run)
