"""`knobscope imitate`: puts the causes of mismatches to the test."""

import argparse
import shutil
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from knobscope.devices import open_locked
from knobscope.durable_files import read_sealed, whole_file, write_sealed
from knobscope.errors import UserError
from knobscope.processes import follow_pipeline
from knobscope.specs import StudySpecs, load_study
from knobscope.specs.reading.arguments import add_measured_study, choose_study, list_results
from knobscope.stages.detect import read_findings, run_rules, write_findings
from knobscope.stages.imitate.findings import blamed_cause, imitate_findings, restate_gain
from knobscope.study_data.opening import open_study
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import loosen_units, plural
from knobscope.text.sentences import Sentences

if TYPE_CHECKING:
    import duckdb

#: A day of fio for a finding is a mistake.
_LONGEST_S = 86_400
#: What a test changes of a finding.
_Tested = Literal["confirmed", "confirmation", "sentence", "penalty", "evidence"]
_TESTED: tuple[_Tested, ...] = get_args(_Tested)


def _run(args: argparse.Namespace) -> int:
    follow_pipeline()
    specs = load_study(choose_study(args), args.root, runnable=False)
    name = specs.study.name
    if args.device is not None and args.device not in specs.devices:
        raise UserError(f"--device {args.device}: expected one of {', '.join(specs.devices)}")
    if not 0 < args.seconds <= _LONGEST_S:
        raise UserError(f"--seconds is {args.seconds:g}; expected more than 0, and {_LONGEST_S} at most")
    (database,) = [args.database] if args.database else list_results(name, "study.duckdb")
    out = args.out or Path(f"{name}-imitated.duckdb" if args.device is None else f"{name}-imitated-{args.device}.json")
    with open_study(database) as connection:
        findings = read_findings(connection)
        rows = _join(findings, args.imitated) if args.imitated else _test(args, specs, connection, findings)
        if args.device is None:
            rows = run_rules(connection, specs, tested=rows)
    if args.device is not None:
        of_device = {index: row for index, row in enumerate(rows) if row["device"] == args.device}
        write_sealed(out, {str(index): {key: row[key] for key in _TESTED} for index, row in of_device.items()})
        rows = list(of_device.values())
    else:
        with whole_file(out) as part:
            shutil.copyfile(database, part)
            write_findings(part, rows)
    confirmed = [row["confirmed"] for row in rows if blamed_cause(row, specs.rules) is not None]
    tested = loosen_units(plural(len(confirmed), "mismatch", "mismatches"))
    print(
        f"imitate {args.device or specs.study.name}: of {tested} with a cause to test, "
        f"{confirmed.count('yes')} confirmed, {confirmed.count('no')} not, {confirmed.count('not_tested')} not tested",
        file=sys.stderr,
    )
    return 0


def _test(
    args: argparse.Namespace,
    specs: StudySpecs,
    connection: "duckdb.DuckDBPyConnection",
    findings: list[FindingRow],
) -> list[FindingRow]:
    """Return the findings with what fio says of them: of those on one device, or of all."""
    testable = {row["device"] for row in findings if blamed_cause(row, specs.rules) is not None}
    wanted = set(specs.devices) if args.device is None else {args.device}
    devices = {name: open_locked([specs.devices[name]], args.root, specs.study.name) for name in testable & wanted}
    rows = imitate_findings(findings, specs.rules, connection, devices, args.seconds)
    sentences = Sentences(specs.dbms)
    return [restate_gain(specs.rules.get(row["rule"]), row, sentences) for row in rows]


def _join(findings: list[FindingRow], files: list[Path]) -> list[FindingRow]:
    """Return the findings with what was found on each device before."""
    tested: dict[int, FindingRow] = {int(index): row for file in files for index, row in read_sealed(file).items()}
    return [row | tested[index] if index in tested else row for index, row in enumerate(findings)]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "imitate",
        help="test the causes of mismatches: fio imitates their I/O and changes one factor",
        description="For each mismatch of a rule that blames a factor of the I/O, imitate the I/O pattern of its runs "
        "with fio on the same device and change that factor alone. Write the study's database with what came out. "
        "Where devices are on several machines, each tests its own (--device), and --imitated joins their answers. "
        "Rules that judge the findings of others are evaluated again, without the refuted ones.",
    )
    add_measured_study(parser)
    parser.add_argument("--database", type=Path, help="DuckDB file that `detect` wrote; it is only read")
    parser.add_argument(
        "--out",
        type=Path,
        help="DuckDB file to write: the same, its findings confirmed or not; with --device a JSON file (default: "
        "STUDY-imitated.duckdb, STUDY-imitated-DEVICE.json)",
    )
    parts = parser.add_mutually_exclusive_group()
    parts.add_argument("--device", help="test findings on this device only, and write what came out, for --imitated")
    parts.add_argument(
        "--imitated",
        type=Path,
        nargs="+",
        metavar="FILE",
        help="test nothing: join what --device wrote",
    )
    parser.add_argument(
        "--seconds",
        type=float,
        default=20.0,
        help="time per finding, at least five rounds; up to three times as long where these give no answer "
        "(default %(default)s)",
    )
    parser.set_defaults(run=_run)
