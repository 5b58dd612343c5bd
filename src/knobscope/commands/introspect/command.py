"""`knobscope introspect`: writes the list of a DBMS's knobs from its own catalogue."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from knobscope.commands.introspect.asking import ask_catalogue, read_settings, state_own_defaults
from knobscope.commands.introspect.catalogue import Catalogue, read_catalogue
from knobscope.commands.introspect.comments import read_comments
from knobscope.commands.introspect.writing import render_catalogue, render_knobs
from knobscope.documents import add_json_argument, write_document
from knobscope.durable_files import write_text
from knobscope.errors import UserError
from knobscope.knob_texts import guess_mechanisms, propose_expectations, read_labelled, read_properties
from knobscope.machine_code import MOST_CALLS, Code, Program, find_server, read_code
from knobscope.processes import follow_pipeline
from knobscope.specs import Dbms, Introspection, read_spec
from knobscope.specs.completing.catalogue import KnobCatalogue
from knobscope.specs.reading.arguments import find_spec


def _run(args: argparse.Namespace) -> int:
    if args.out is not None and args.out.suffix not in (".yaml", ".json"):
        raise UserError(f"no form for {args.out.name}; expected a name that ends in .yaml or .json")
    follow_pipeline()
    dbms = read_spec(find_spec("DBMS", args.dbms, args.root / "specs/dbms"), Dbms, None)[1]
    answer = ask_catalogue(dbms) if args.settings is None else read_settings(args.settings)
    if dbms.introspect is None:
        raise UserError(f"{args.dbms} has no `introspect`, which says what the words of {args.settings} mean")
    rows = _add_comments(dbms.introspect, state_own_defaults(dbms, answer.rows))
    raw_catalogue = read_catalogue(dbms.introspect, rows, dbms.knobs.keys())
    labelled = read_labelled(args.root / "specs/dbms")
    code = _follow_settings(dbms, args.program, raw_catalogue)
    knobs = guess_mechanisms(dbms.name, raw_catalogue.knobs, labelled, code)
    knobs = propose_expectations(knobs, read_properties(args.root / "specs/dbms", labelled))
    catalogue = Catalogue(knobs, raw_catalogue.left_out)
    as_json = render_catalogue(dbms.name, answer.version, catalogue)
    as_yaml = render_knobs(dbms.name, answer.version, catalogue, code)
    if args.out is not None:
        write_text(args.out, as_json if args.out.suffix == ".json" else as_yaml)
    if not write_document(args, json.loads(as_json)) and args.out is None:
        print(as_yaml, end="")
    kinds = ", ".join(f"{count} {kind}" for kind, count in sorted(catalogue.count_types().items()))
    settings = len(catalogue.knobs) + len(catalogue.left_out)
    print(
        f"{dbms.name} {answer.version}: {settings} settings, {len(catalogue.knobs)} knobs ({kinds}), "
        f"{len(dbms.knobs)} in its spec",
        file=sys.stderr,
    )
    return 0


def _follow_settings(dbms: Dbms, program: Path | None, catalogue: Catalogue) -> Code | None:
    """Return what the code of a program, or else of the server, says of its settings; tell on stderr how much that is.

    UserError: a program that was named cannot be read.
    """
    server = program or find_server(dbms)
    if server is None:
        return None
    try:
        code = read_code(Program(server), {*catalogue.knobs, *catalogue.left_out})
    except UserError as error:
        if program is not None:
            raise
        print(f"the server's code says nothing: {error}", file=sys.stderr)
        return None
    read = [name for name in catalogue.knobs if code.readers.get(name)]
    lead = sum(code.nearest(name) is not None for name in read)
    print(
        f"{server}: functions that read {len(read)} of {len(catalogue.knobs)} knobs were found in its code; "
        f"those of {lead} are at most {MOST_CALLS} calls from a request to storage",
        file=sys.stderr,
    )
    return code


def _add_comments(introspection: Introspection, rows: dict[str, dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """Return the settings with what `comments` says of them; what the DBMS itself says stays."""
    if introspection.comments is None:
        return rows
    try:
        comments = read_comments(Path(introspection.comments), rows)
    except OSError as error:
        print(f"{introspection.comments}: {error.strerror}: there are no descriptions", file=sys.stderr)
        return rows
    return {name: {**comments.get(name, {}), **row} for name, row in rows.items()}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommand."""
    parser = subparsers.add_parser(
        "introspect",
        help="write the list of a DBMS's knobs from its own catalogue",
        description="Start a DBMS from its spec on an empty data directory, ask for all its settings as `introspect` "
        "in its spec says, and write them as YAML that is valid as the `knobs` of a spec: type, range, values, unit, "
        "default, apply, and the I/O mechanism: as the shipped catalogue of this DBMS has it, or that of a version or "
        "fork, or a guess by name, description and the code that reads the setting. Where calls lead from there to a "
        "request to storage, a comment names them. Settings that are no knobs (texts, lists, what the catalogue does "
        "not describe) are counted in the heading. A summary goes to stderr.",
    )
    parser.add_argument("dbms", metavar="DBMS", help="name in specs/dbms, or a YAML file")
    parser.add_argument(
        "--out",
        type=Path,
        help="file to write: NAME.yaml, for people, or NAME.json, as "
        "specs/dbms/catalogue holds them; standard output without",
    )
    parser.add_argument(
        "--settings",
        type=Path,
        metavar="FILE",
        help="a file that lists the settings, so that the DBMS is not started: lines of JSON, the first one with "
        "`version`, each other one with `name` and the columns of a catalogue (as `introspect.query` returns them)",
    )
    parser.add_argument(
        "--program",
        type=Path,
        help="the program whose machine code is followed (ELF, x86-64); the server's own without",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout whose specs are used")
    add_json_argument(parser, KnobCatalogue)
    parser.set_defaults(run=_run)
