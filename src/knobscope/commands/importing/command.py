"""`knobscope import`: makes a study of runs that were measured elsewhere."""

import argparse
import shlex
import shutil
import sys
from pathlib import Path

from knobscope.cells import to_csv
from knobscope.commands.importing.columns import SIDE_TABLES
from knobscope.commands.importing.knobs import imported_knobs
from knobscope.commands.importing.runs import ImportedTable, read_runs
from knobscope.commands.importing.study import ImportedStudy, write_study
from knobscope.commands.importing.tools import TOOLS
from knobscope.errors import UserError
from knobscope.specs import Dbms, SpecErrors, read_spec
from knobscope.specs.completing.catalogue import add_named_knobs
from knobscope.specs.reading.base import check_name

__all__ = ["add_parser"]


def _run(args: argparse.Namespace) -> int:
    if args.tool is not None:
        return _write_table(args)
    if len(args.inputs) != 1:
        raise UserError(f"found {len(args.inputs)} tables; expected one, and others as --table TABLE=FILE.csv")
    if args.study is None:
        raise UserError("found no --study; expected --study NAME, the name of the study")
    try:
        check_name(args.study)
    except ValueError as error:
        raise UserError(f"--study is {args.study!r}; expected {error}") from error
    out = args.out or Path("results") / args.study
    if out.exists():
        raise UserError(f"{out} exists; remove it, or write elsewhere with --out")
    table = read_runs(args.inputs[0], _side_files(args.tables), args.decimal)
    _note_runs_apart(table)
    known_dbms = _known_dbms(args.specs, table)
    knobs = imported_knobs(table, known_dbms, args.decimal)
    for dbms, of_dbms in knobs.items():
        for name, knob in of_dbms.items():
            if knob.numbers.notes and knob.type in ("integer", "real"):
                print(f"{dbms}: {name}: numbers, {', '.join(knob.numbers.notes)}", file=sys.stderr)
        if names := [name for name, knob in of_dbms.items() if knob.is_unordered and "expect" in knob.facts]:
            note = "`expect` is not used: which word is more, a column `order` has to say"
            print(f"{dbms}: {', '.join(names)}: {note}", file=sys.stderr)
    study = write_study(table, args.study, knobs, known_dbms, out)
    cases = len({run.case for run in table.runs})
    print(f"{out}: {len(table.runs)} runs of {cases} case{'s' if cases != 1 else ''}. Go on with", file=sys.stderr)
    print("\n".join(_next_commands(study, out)))
    return 0


def _write_table(args: argparse.Namespace) -> int:
    """Write the runs of another tool as a table."""
    if args.out is None:
        raise UserError("found no --out; expected --out FILE.csv, the table to write")
    if args.out.exists():
        raise UserError(f"{args.out} exists; remove it, or name another file")
    result = TOOLS[args.tool](args.inputs, args.study)
    if not result.runs:
        raise UserError(f"{', '.join(map(str, args.inputs))}: found no finished run; expected at least one")
    args.out.write_text(to_csv(result.rows()), encoding="utf-8", newline="")
    for note in result.notes:
        print(note, file=sys.stderr)
    print(f"{args.out}: {len(result.runs)} runs. Go on with", file=sys.stderr)
    factors = ",".join(result.factors)
    print(
        f"{_program()} rank {shlex.quote(str(args.out))} --response {result.response} --factors {shlex.quote(factors)}"
    )
    return 0


def _program() -> str:
    """Return how a shell calls knobscope here."""
    return "knobscope" if shutil.which("knobscope") else shlex.quote(str(Path(sys.executable).parent / "knobscope"))


def _side_files(named: list[str]) -> dict[str, Path]:
    files = {}
    for text in named:
        table, equals, file = text.partition("=")
        if not equals or table not in SIDE_TABLES:
            raise UserError(f"--table is {text!r}; expected TABLE=FILE.csv with one of {', '.join(SIDE_TABLES)}")
        if table in files:
            raise UserError(f"--table {table} is given twice")
        files[table] = Path(file)
    return files


def _note_runs_apart(table: ImportedTable) -> None:
    """Say how many runs have nothing to be compared with: no default run in their session."""
    with_default = {(run.case, run.block, run.session) for run in table.runs if run.knob is None}
    apart = [run for run in table.runs if (run.case, run.block, run.session) not in with_default]
    if apart:
        first, count = apart[0], f"{len(apart)} of {len(table.runs)} runs"
        print(
            f"{count} are of sessions without a run of the default configuration, so their values have no effect; "
            f"the first is in line {first.line.number} (session: {first.session})",
            file=sys.stderr,
        )


def _known_dbms(specs: Path, table: ImportedTable) -> dict[str, Dbms]:
    """Return the specs of those DBMSs that have one that can be read, with knobs that only their catalogue has."""
    named: dict[str, dict[str, None]] = {}
    for run in table.runs:
        knobs = named.setdefault(run.case.dbms, {})
        if run.knob is not None:
            knobs[run.knob] = None
    dbms_specs = {}
    for name, knobs in named.items():
        path = specs / "dbms" / f"{name}.yaml"
        if path.is_file():
            try:
                dbms_specs[name] = add_named_knobs(read_spec(path, Dbms, None)[1], path, knobs)[0]
            except SpecErrors as error:
                print(f"{path} is not used: {error}", file=sys.stderr)
    return dbms_specs


def _next_commands(study: ImportedStudy, out: Path) -> list[str]:
    """Return what judges and reports the study: commands that a shell takes as they are, in whatever folder."""
    folder, study_file = shlex.quote(str(out.absolute())), shlex.quote(str(study.study.absolute()))
    program, database = _program(), f"{folder}/study.duckdb"
    return [
        f"{program} detect --study {study_file} --runs {folder}/*/*/*/runs/* --plans {folder}/*/*/*/plan/*"
        f" --devices {folder}/devices/* --out {database}",
        f"{program} report --study {study_file} --database {database} --out {folder}/report.html",
    ]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "import",
        help="make a study of runs that were measured elsewhere",
        description="Read a CSV with a row per run, each of which changes one knob of the default configuration or "
        "none, and write the study that `detect` and `report` work on. Everything that is wrong in the files is "
        "reported at once, by line. With --from, read the results of another tool and write them as a table with a "
        "row per run, for `rank`, `replay` and `trend`. docs/how-to/import.md describes the columns and the tools.",
    )
    parser.add_argument(
        "inputs", type=Path, nargs="+", metavar="RUNS.csv", help="one row per run; with --from, files of that tool"
    )
    parser.add_argument("--from", dest="tool", choices=list(TOOLS), help="the tool whose files these are")
    parser.add_argument(
        "--study", metavar="NAME", help="name of the study; with --from, which study of a storage that has several"
    )
    parser.add_argument(
        "--table",
        dest="tables",
        action="append",
        default=[],
        metavar="TABLE=FILE.csv",
        help="another table of the runs, such as intervals, io_profile or queue_depth (may be repeated)",
    )
    parser.add_argument(
        "--specs", type=Path, default=Path("specs"), metavar="DIR", help="specs that describe knobs (default: specs)"
    )
    parser.add_argument(
        "--decimal", choices=[".", ","], help="what separates decimals, where a column leaves it open (1,234)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write (default: results/NAME); with --from, the CSV"
    )
    parser.set_defaults(run=_run)
