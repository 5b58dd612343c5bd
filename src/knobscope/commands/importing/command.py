"""`knobscope import`: makes a study of runs that were measured elsewhere."""

import argparse
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from knobscope.cells import Problems, to_csv
from knobscope.commands.importing.columns import SIDE_TABLES
from knobscope.commands.importing.knobs import ImportedKnob, imported_knobs
from knobscope.commands.importing.layout import Layout
from knobscope.commands.importing.runs import ImportedTable, read_runs
from knobscope.commands.importing.study import write_study
from knobscope.commands.importing.tools import TOOLS
from knobscope.durable_files import remove, write_text
from knobscope.errors import UserError
from knobscope.specs import Case, Dbms, SpecErrors, read_spec
from knobscope.specs.completing.catalogue import add_named_knobs
from knobscope.specs.reading.arguments import require_name
from knobscope.statistics.suspicion import refuse_measured
from knobscope.text.formats import join_words, plural

_RESPONSE = "throughput_ops"
#: Where specs are unless somebody says so; no table needs any.
_SPECS = Path("specs")


def _run(args: argparse.Namespace) -> int:
    if args.tool is not None:
        _refuse_options_of_runs(args)
        return _write_table(args)
    if not args.specs.is_dir() and args.specs != _SPECS:
        raise UserError(f"--specs: found no folder {args.specs}; expected one with specs, such as that of a checkout")
    if len(args.inputs) != 1:
        raise UserError(f"found {len(args.inputs)} tables; expected one, and others as --table TABLE=FILE.csv")
    if args.study is None:
        raise UserError("found no --study; expected --study NAME, the name of the study")
    require_name("--study", args.study)
    out = args.out or Path("results") / args.study
    if out.exists():
        raise UserError(f"{out} exists; remove it, or write elsewhere with --out")
    problems = Problems()
    table = read_runs(args.inputs[0], _side_files(args.tables), args.decimal, _layout(args), problems)
    known_dbms = _known_dbms(args.specs, table)
    knobs = imported_knobs(table, known_dbms, args.decimal, problems)
    problems.raise_if_any()
    if not table.is_designed:
        _note_runs_apart(table)
    if table.is_designed and not args.factors:
        _refuse_measured(table, knobs)
    for dbms, of_dbms in knobs.items():
        _say(dbms, of_dbms)
    try:
        study = write_study(table, args.study, knobs, known_dbms, out)
    except BaseException:
        remove(out)  # half a study would be in the way of the next call
        raise
    cases = list(dict.fromkeys(run.case for run in table.runs))
    print(f"{out}: {len(table.runs)} runs of {plural(len(cases), 'case')}. Go on with", file=sys.stderr)
    print("\n".join(_next_commands(study, cases if table.is_designed else [], out)))
    return 0


def _refuse_options_of_runs(args: argparse.Namespace) -> None:
    """Raise UserError for options that say how a table of runs is read, where files of another tool are."""
    options = ("table", "response", "set", "ignore", "factors", "failed_value", "baseline", "decimal")
    values = {**vars(args), "table": args.tables, "response": args.response != _RESPONSE}
    if given := [f"--{name.replace('_', '-')}" for name in options if values[name]]:
        raise UserError(f"found {join_words(given)} with --from {args.tool}; expected them where its table is read")


def _layout(args: argparse.Namespace) -> Layout:
    ignored, factors = (
        tuple(name.strip() for name in (text or "").split(",") if name.strip()) for text in (args.ignore, args.factors)
    )
    same, baseline = (dict(_assignments(name, getattr(args, name))) for name in ("set", "baseline"))
    return Layout(args.response, same, ignored, factors, tuple(args.failed_value), baseline)


def _refuse_measured(table: ImportedTable, knobs: Mapping[str, Mapping[str, ImportedKnob]]) -> None:
    """Raise UserError for columns that would be knobs and look measured."""
    import pandas as pd

    for dbms, of_dbms in knobs.items():
        runs = [run for run in table.runs if run.case.dbms == dbms and run.line[_RESPONSE] is not None]
        columns = {name: [knob.values[run.settings[name]] for run in runs] for name, knob in of_dbms.items()}
        frame = pd.DataFrame({**columns, _RESPONSE: [run.line[_RESPONSE] for run in runs]})
        refuse_measured(frame, _RESPONSE, list(columns))


def _assignments(option: str, texts: list[str]) -> Iterator[tuple[str, str]]:
    for text in texts:
        name, equals, value = text.partition("=")
        if not (name and equals and value):
            raise UserError(f"--{option} is {text!r}; expected NAME=VALUE")
        yield name, value


def _say(dbms: str, knobs: Mapping[str, ImportedKnob]) -> None:
    """Say on stderr how the values of knobs were read."""
    for name, knob in knobs.items():
        if knob.numbers.notes and knob.type in ("integer", "real"):
            print(f"{dbms}: {name}: numbers, {', '.join(knob.numbers.notes)}", file=sys.stderr)
    if names := [name for name, knob in knobs.items() if knob.is_unordered and "expect" in knob.facts]:
        note = "`expect` is not used: which word is more, a column `order` has to say"
        print(f"{dbms}: {', '.join(names)}: {note}", file=sys.stderr)
    if typical := [f"{name}={knob.reference}" for name, knob in knobs.items() if not knob.is_default_measured]:
        note = "effects are against typical values, as no default is known and measured (--baseline KNOB=VALUE)"
        print(f"{dbms}: {note}: {', '.join(typical)}", file=sys.stderr)
    if cut := [name for name, knob in knobs.items() if knob.levels and len(set(knob.values)) > len(knob.levels) + 1]:
        print(f"{dbms}: many values, looked at on a few levels: {', '.join(cut)}", file=sys.stderr)


def _write_table(args: argparse.Namespace) -> int:
    """Write the runs of another tool as a table."""
    if args.out is None:
        raise UserError("found no --out; expected --out FILE.csv, the table to write")
    if args.out.exists():
        raise UserError(f"{args.out} exists; remove it, or name another file")
    result = TOOLS[args.tool](args.inputs, args.study)
    if not result.runs:
        raise UserError(f"{', '.join(map(str, args.inputs))}: found no finished run; expected at least one")
    write_text(args.out, to_csv(result.rows()))
    for note in result.notes:
        print(note, file=sys.stderr)
    if untold := len(result.runs) - len(result.told):
        print(f"left out, as their settings are not in the files: {plural(untold, 'failed run')}", file=sys.stderr)
    factors, count = ",".join(result.factors), plural(len(result.told), "run")
    if not factors:
        why = "no setting differs between those that did not fail, so there is nothing to rank"
        print(f"{args.out}: {count}; {why}", file=sys.stderr)
        return 0
    print(f"{args.out}: {count}. Go on with", file=sys.stderr)
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
    with_default = {(run.case, run.block, run.session) for run in table.runs if not run.settings}
    apart = [run for run in table.runs if (run.case, run.block, run.session) not in with_default]
    if apart:
        first, count = apart[0], f"{len(apart)} of {len(table.runs)} runs"
        print(
            f"{count} are of sessions without a run of the default configuration, so nothing is known of the effects "
            f"of their values; the first is in line {first.line.number} (session: {first.session})",
            file=sys.stderr,
        )


def _known_dbms(specs: Path, table: ImportedTable) -> dict[str, Dbms]:
    """Return the specs of those DBMSs that have one that can be read, with knobs that only their catalogue has."""
    named: dict[str, dict[str, None]] = {}
    for run in table.runs:
        named.setdefault(run.case.dbms, {}).update(dict.fromkeys(run.settings))
    dbms_specs = {}
    for name, knobs in named.items():
        path = specs / "dbms" / f"{name}.yaml"
        if path.is_file():
            try:
                dbms_specs[name] = add_named_knobs(read_spec(path, Dbms, None)[1], path, knobs)[0]
            except SpecErrors as error:
                print(f"{path} is not used: {error}", file=sys.stderr)
    return dbms_specs


def _next_commands(study: Path, designed: Sequence[Case], out: Path) -> list[str]:
    """Return what judges and reports a study: commands that a shell takes as they are, in whatever folder.

    `designed` are the cases whose knobs can be ranked.
    """
    folder, study_file = shlex.quote(str(out.absolute())), shlex.quote(str(study.absolute()))
    program, database = _program(), f"{folder}/study.duckdb"
    of_case = {case: f"{folder}/{shlex.quote(str(case))}" for case in designed}
    return [
        *(
            f"{program} select --study {study_file} --case {case} --round 0 --runs {path}/runs/* --plans {path}/plan/*"
            f" --out {path}/fit/0.json"
            for case, path in of_case.items()
        ),
        f"{program} detect --study {study_file} --runs {folder}/*/*/*/runs/* --plans {folder}/*/*/*/plan/*"
        f"{f' --fits {folder}/*/*/*/fit/*' if of_case else ''} --devices {folder}/devices/* --out {database}",
        f"{program} report --study {study_file} --database {database} --out {folder}/report.html",
    ]


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "import",
        help="make a study of runs that were measured elsewhere",
        description="Read a CSV with a row per run, and write the study that `detect` and `report` work on. A row "
        "changes one knob of the default configuration or none (columns `knob` and `value`), or has a column per knob, "
        "as a screening sample. Everything that is wrong in the files is "
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
        "--response",
        default=_RESPONSE,
        metavar="COL",
        help="the column with operations per second (default: %(default)s)",
    )
    parser.add_argument(
        "--set",
        action="append",
        default=[],
        metavar="COL=VALUE",
        help="a column that the table does not have, the same in all rows, as dbms=mysql (may be repeated)",
    )
    parser.add_argument("--ignore", metavar="A,B", help="columns to leave out, such as other measured ones")
    parser.add_argument(
        "--factors", metavar="A,B", help="the columns that are knobs, where each has one (default: all unknown ones)"
    )
    parser.add_argument(
        "--failed-value",
        action="append",
        default=[],
        metavar="X",
        help="a text in the response that stands for a failed run, such as 0, or COL=X where another column says which "
        "runs failed (may be repeated)",
    )
    parser.add_argument(
        "--baseline",
        action="append",
        default=[],
        metavar="KNOB=VALUE",
        help="a knob's value in the default configuration, where no spec or catalogue has it (may be repeated)",
    )
    parser.add_argument(
        "--specs", type=Path, default=_SPECS, metavar="DIR", help="specs that describe knobs (default: specs)"
    )
    parser.add_argument(
        "--decimal", choices=[".", ","], help="what separates decimals, where a column leaves it open (1,234)"
    )
    parser.add_argument(
        "--out", type=Path, metavar="DIR", help="folder to write (default: results/NAME); with --from, the CSV"
    )
    parser.set_defaults(run=_run)
