"""`knobscope finding`: lists the mismatches of a study, or prints one as a report for the DBMS's developers."""

import argparse
import json
import math
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated, Any

from pydantic import Field

from knobscope.commands.finding.markdown import describe_mismatch
from knobscope.document_part import Part
from knobscope.documents import add_json_argument, write_document
from knobscope.durable_files import write_text
from knobscope.errors import UserError
from knobscope.figures import write_figures
from knobscope.machine_code import Program, Reader, find_server, read_code
from knobscope.specs import Dbms, ask_version, load_study
from knobscope.specs.completing.catalogue import catalogue_file, read_knob_catalogue
from knobscope.specs.reading.arguments import add_study_name, find_study
from knobscope.stages.detect import Mismatch, merge_findings
from knobscope.stages.report.sections import draw_pictures
from knobscope.study_data.study import StudyData
from knobscope.tables.detection import FindingRow
from knobscope.tables.json_schema import RowSchema
from knobscope.text.formats import UNKNOWN, format_fold, plural
from knobscope.text.text_table import align


class MismatchPart(Part):
    """A mismatch: one knob of one DBMS, and one cause."""

    number: int = Field(description="As in the report, from 1 on.")
    dbms: str
    knob: str | None = Field(description="Null: the default configuration itself, whatever the knobs are set to.")
    cause: str | None = Field(description="What the rules blame, or an experiment found; null where nothing is named.")
    rules: list[str]
    penalty: float | None = Field(description="Of the costliest finding.")
    findings: list[Annotated[dict[str, Any], RowSchema(FindingRow, evidence={"type": ["object", "null"]})]] = Field(
        description="Rows of table `findings`, the costliest first."
    )


class ReaderPart(Part):
    """A function of the server that reads the knob."""

    name: str
    path: list[str] = Field(description="Functions on the shortest way from there to a request to storage.")


class FindingDocument(Part):
    """What `knobscope finding` writes: all mismatches of a study, or the one that was requested."""

    study: str
    mismatches: list[MismatchPart] = Field(description="The costliest first.")
    readers: list[ReaderPart] | None = Field(description="With a number: functions that read the knob.")


def _run(args: argparse.Namespace) -> int:
    for option, value in (("--out", args.out), ("--program", args.program)):
        if value is not None and args.number is None:
            raise UserError(f"{option}: found no N; expected the number of a mismatch, which `finding STUDY` lists")
    study = find_study(args.study)
    specs = load_study(study, args.root, runnable=False)
    database = args.database or Path("results") / specs.study.name / "study.duckdb"
    with StudyData.open(database, specs) as data:
        findings = data.table(FindingRow, "SELECT * FROM findings")
        mismatches = merge_findings(findings)
        if args.number is None:
            if not write_document(args, _as_json(specs.study.name, mismatches)):
                print(_list(mismatches) if mismatches else _why_none(findings))
            return 0
        mismatch = _choose(mismatches, args.number)
        pictures = []
        if args.out:
            figures = draw_pictures(data, mismatch.worst, f"finding-{mismatch.number}")
            pictures = [(path, figure) for figure in figures for path in write_figures([figure], args.out)]
        dbms = specs.dbms.get(mismatch.worst["dbms"])
        readers: Sequence[Reader] = []
        if dbms is not None and mismatch.knob is not None:
            catalogue = read_knob_catalogue(
                catalogue_file(study.absolute().parent.parent / "dbms" / f"{dbms.name}.yaml")
            )
            settings = catalogue.settings if catalogue is not None else ()
            readers = find_readers(data, dbms, mismatch.knob, args.program, settings)
        text = describe_mismatch(data, mismatch, study, pictures, readers)
    if args.out:
        file = args.out / f"finding-{mismatch.number}.md"
        args.out.mkdir(parents=True, exist_ok=True)
        write_text(file, text)
        text = f"wrote {file} and {plural(len(pictures), 'picture')}\n"
    if not write_document(args, _as_json(specs.study.name, [mismatch], readers)):
        print(text, end="")
    return 0


def _as_json(study: str, mismatches: Sequence[Mismatch], readers: Sequence[Reader] | None = None) -> dict[str, Any]:
    parts = [
        {
            "number": mismatch.number,
            "dbms": mismatch.worst["dbms"],
            "knob": mismatch.knob,
            "cause": mismatch.cause,
            "rules": mismatch.names("rule"),
            "penalty": mismatch.worst["penalty"],
            "findings": [{**row, "evidence": json.loads(row["evidence"] or "null")} for row in mismatch.findings],
        }
        for mismatch in mismatches
    ]
    functions = None if readers is None else [{"name": reader.name, "path": reader.path} for reader in readers]
    return {"study": study, "mismatches": parts, "readers": functions}


def _why_none(findings: Sequence[FindingRow]) -> str:
    if all(row["verdict"] == "insufficient" for row in findings):
        return "No mismatch was found, but none was ruled out: no question could be judged."
    return "No mismatch was found."


def _list(mismatches: Sequence[Mismatch]) -> str:
    table = [["finding", "DBMS", "knob", "cause", "rules", "findings", "penalty"]]
    for mismatch in mismatches:
        penalty = mismatch.worst["penalty"]
        table.append(
            [
                str(mismatch.number),
                mismatch.worst["dbms"],
                mismatch.knob or "(any setting)",
                mismatch.cause or "not named",
                ", ".join(mismatch.names("rule")),
                str(len(mismatch.findings)),
                UNKNOWN if penalty is None else format_fold(math.log(penalty)),
            ]
        )
    return align([[" ".join(cell.split()) for cell in row] for row in table])


def _choose(mismatches: Sequence[Mismatch], number: int) -> Mismatch:
    if not 1 <= number <= len(mismatches):
        have = f"expected one of 1 to {len(mismatches)}" if mismatches else "no mismatch was found"
        raise UserError(f"no finding {number}; {have}")
    return mismatches[number - 1]


def find_readers(
    data: StudyData, dbms: Dbms, knob: str, program: Path | None, settings: Iterable[str] = ()
) -> Sequence[Reader]:
    """Return the functions of the server that read a knob, those near storage first; none where no program tells.

    What reads the configuration, and what a part calls its settings, shows in all `settings` of the DBMS.

    Without a program that is named it is the installed one, if it has a version that ran in the study: the same path
    may hold another DBMS. UserError: a program that was named cannot be read.
    """
    server = program or find_server(dbms)
    if server is None or knob not in dbms.knobs:
        return []
    try:
        if program is None:
            _check_version(data, dbms, server)
        readers = read_code(Program(server), {*dbms.knobs, *settings}).readers.get(knob, ())
    except UserError as error:
        if program is not None:
            raise
        print(f"The report does not say which code reads the knob: {error}", file=sys.stderr)
        return []
    return sorted(readers, key=lambda reader: (not reader.path, len(reader.path), reader.address))


def _check_version(data: StudyData, dbms: Dbms, server: Path) -> None:
    """Raise UserError unless an installed server has a version that the study measured."""
    if dbms.version is None:
        return
    rows = data.rows("SELECT DISTINCT dbms_version FROM runs WHERE dbms = ? AND status = 'ok' ORDER BY ALL", dbms.name)
    versions = [str(row["dbms_version"]) for row in rows]
    installed = ask_version(dbms.version, dbms.programs, dbms.paths)
    if installed not in versions:
        expected = f"{dbms.name} {' or '.join(versions)}, which the study measured, or --program"
        raise UserError(f"{server} is version {installed}; expected {expected}")


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "finding",
        help="print a mismatch as a report for the DBMS's developers",
        description="Print a mismatch of a finished study as Markdown: what was seen where and how sure that is, what "
        "its cause is, which functions of the server read the knob, versions, the device's figures, the two "
        "configurations, and how to repeat it. The report of the study numbers its mismatches; without a number they "
        "are listed.",
    )
    add_study_name(parser)
    parser.add_argument("number", type=int, nargs="?", metavar="N", help="which mismatch")
    parser.add_argument(
        "--database", type=Path, help="the study's DuckDB file (default: results/STUDY/study.duckdb); it is only read"
    )
    parser.add_argument(
        "--program", type=Path, help="the server's program, in which the knob is looked for (ELF, x86-64)"
    )
    parser.add_argument("--out", type=Path, metavar="DIR", help="write it there, with its pictures and their data")
    add_json_argument(parser, FindingDocument)
    parser.set_defaults(run=_run)
