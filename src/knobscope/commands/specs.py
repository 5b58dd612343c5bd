"""`knobscope validate` and `knobscope schema`: checks specs, and writes what is generated from their models."""

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from pydantic import Field

from knobscope.document_part import Part
from knobscope.documents import add_json_argument, write_document
from knobscope.errors import UserError
from knobscope.specs.checks.emulation_limits import describe_limits
from knobscope.specs.documents.reference import write_reference
from knobscope.specs.documents.rule_page import render_rules, write_rules
from knobscope.specs.documents.schema import write_schemas
from knobscope.specs.library import StudySpecs, find_specs, load_study, validate_files
from knobscope.specs.models.device import Device
from knobscope.specs.models.rule import SHIPPED_RULES, Rule, RuleSpec, read_rule, shipped_rules
from knobscope.specs.reading.arguments import find_study
from knobscope.specs.reading.source import SpecErrors, SpecProblem
from knobscope.specs.shelf import read_spec


class Problem(Part):
    """One thing that is wrong in a spec."""

    file: str
    line: int = Field(description="From 1 on.")
    key: str = Field(description="Its keys, joined by dots; empty for the whole file.")
    found: str
    expected: str


class ValidateDocument(Part):
    """What `knobscope validate` writes; with problems its exit code is 2."""

    files: list[str] = Field(description="The specs that were checked.")
    problems: list[Problem] = Field(description="All of them, by file and line; empty where nothing is wrong.")
    notes: list[str] = Field(description="What modelled devices cannot reach on this machine.")


class DescribedRule(RuleSpec):
    """A mismatch rule: what its `rule.yaml` says, and the comment at the head of its query."""

    claim: str = Field(description="What a mismatch of this rule is.")
    header: dict[str, str] = Field(description="Heading of the comment -> paragraph, such as `Cannot see`.")


class RulesDocument(Part):
    """What `knobscope rules` writes."""

    rules: list[DescribedRule]


def _validate(args: argparse.Namespace) -> int:
    wanted = args.paths or [args.root / "specs"]
    for path in wanted:
        if not path.exists():
            raise UserError(f"{path} does not exist; give spec files, or folders that hold some")
    files = find_specs(wanted)
    if not files:
        raise UserError(f"no spec in {', '.join(map(str, wanted))}; expected files NAME.yaml")
    if args.json:
        return _print_validation(args, files)
    validate_files(files, args.root, runnable=args.runnable, check_specs=_check_queries)
    for note in _notes_on(files):
        print(f"note: {note}", file=sys.stderr)
    print(f"{len(files)} spec{'s' if len(files) != 1 else ''} checked, no problem found")
    return 0


def _check_queries(specs: StudySpecs) -> None:
    if specs.own_rules:
        from knobscope.stages.detect import check_queries  # takes longer to import than most specs to check

        check_queries(specs)


def _notes_on(files: Iterable[Path]) -> list[str]:
    """Return what modelled devices among valid specs cannot reach here."""
    devices = [read_spec(file, Device, None)[1] for file in files if file.absolute().parent.name == "devices"]
    return [text for device in devices for text in describe_limits(device)]


def _print_validation(args: argparse.Namespace, files: list[Path]) -> int:
    """Print files, problems and notes as JSON; returns the exit code."""
    problems: list[SpecProblem] = []
    try:
        validate_files(files, args.root, runnable=args.runnable, check_specs=_check_queries)
    except SpecErrors as error:
        problems = error.problems
    shown = [
        {key: getattr(problem, key) for key in ("file", "line", "key", "found", "expected")} for problem in problems
    ]
    notes = [] if problems else _notes_on(files)
    write_document(args, {"files": list(map(str, files)), "problems": shown, "notes": notes})
    return 2 if problems else 0


def _schema(args: argparse.Namespace) -> int:
    pages = args.root / "docs/reference"
    written = [write_reference(pages / "specs.md"), write_rules(pages / "rules.md")]
    for path in [*write_schemas(args.root / "specs/schemas"), *written]:
        print(path)
    return 0


def _rules(args: argparse.Namespace) -> int:
    if args.study is None:
        rules = [read_rule(SHIPPED_RULES / name) for name in shipped_rules()]
    else:
        rules = list(load_study(find_study(args.study), args.root, runnable=False).rules.values())
    described = [
        {**rule.about.model_dump(mode="json"), "claim": rule.header[""], "header": _headings(rule)} for rule in rules
    ]
    if not write_document(args, {"rules": described}):
        print(render_rules(rules))
    return 0


def _headings(rule: Rule) -> dict[str, str]:
    return {heading: text for heading, text in rule.header.items() if heading}


def add_parser(subparsers: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    """Add the subcommands."""
    parser = subparsers.add_parser(
        "validate",
        help="check specs and report all problems at once",
        description="Check specs against their models and against each other. Prints every problem of every file as "
        "FILE:LINE: KEY: what was found; what was expected, and ends with exit code 2 then. Writes nothing.",
    )
    parser.add_argument("paths", type=Path, nargs="*", metavar="PATH", help="files or folders; all of specs/ without")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")
    parser.add_argument(
        "--runnable",
        action="store_true",
        help="also check that programs are installed and device directories can be written here",
    )
    add_json_argument(parser, ValidateDocument)
    parser.set_defaults(run=_validate)

    parser = subparsers.add_parser(
        "schema",
        help="write JSON Schemas and the reference of all spec fields",
        description="Write specs/schemas/*.json, with which an editor completes and checks specs, "
        "docs/reference/specs.md and docs/reference/rules.md. All are generated from models and rules; only a change "
        "of models or rules makes them stale.",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout to write into")
    parser.set_defaults(run=_schema)

    parser = subparsers.add_parser(
        "rules",
        help="describe the mismatch rules",
        description="Print what each mismatch rule claims, which thresholds it has, what it needs and what it cannot "
        "see, as a page in Markdown: of the rules that come with knobscope, or of those that a study asks for.",
    )
    parser.add_argument("study", nargs="?", metavar="STUDY", help="study YAML, or its name in specs/studies")
    parser.add_argument("--root", type=Path, default=Path(), help="what relative device paths start from")
    add_json_argument(parser, RulesDocument)
    parser.set_defaults(run=_rules)
