"""`knobscope validate` and `knobscope schema`: checks specs, and writes what is generated from their models."""

import argparse
from pathlib import Path

from knobscope.errors import UserError
from knobscope.specs.library import find_specs, validate_files
from knobscope.specs.reference import write_reference
from knobscope.specs.schema import write_schemas

__all__ = ["add_parser"]


def _validate(args: argparse.Namespace) -> int:
    wanted = args.paths or [args.root / "specs"]
    for path in wanted:
        if not path.exists():
            raise UserError(f"{path} does not exist; give spec files, or folders that hold some")
    files = find_specs(wanted)
    if not files:
        raise UserError(f"no spec in {', '.join(map(str, wanted))}; expected files NAME.yaml")
    validate_files(files, args.root, runnable=args.runnable)
    print(f"{len(files)} spec{'s' if len(files) != 1 else ''} checked, no problem found")
    return 0


def _schema(args: argparse.Namespace) -> int:
    for path in [*write_schemas(args.root / "specs/schemas"), write_reference(args.root / "docs/specs.md")]:
        print(path)
    return 0


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
    parser.set_defaults(run=_validate)

    parser = subparsers.add_parser(
        "schema",
        help="write JSON Schemas and the reference of all spec fields",
        description="Write specs/schemas/*.json, with which an editor completes and checks specs, and docs/specs.md. "
        "Both are generated from the models; only a change of the models makes them stale.",
    )
    parser.add_argument("--root", type=Path, default=Path(), help="the checkout to write into")
    parser.set_defaults(run=_schema)
