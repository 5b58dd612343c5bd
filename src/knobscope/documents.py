"""`--json`: the documents that commands print for scripts, in addition to the text that they print for people.

A command names the type of its document where it adds the argument; `knobscope.reference` writes a JSON Schema of it.
Keys are an interface: more may be added, none changes its meaning.
"""

import argparse
import json
from pathlib import Path
from typing import Any

from knobscope.durable_files import finite, write_json

_STANDARD_OUTPUT = "-"
_WHAT = "the document of docs/reference/schemas"


def add_json_argument(parser: argparse.ArgumentParser, document: Any, *, may_be_file: bool = False) -> None:
    """Add `--json` for documents of a type: a model, a dataclass, or a TypedDict with columns of tables."""
    if may_be_file:
        parser.add_argument(
            "--json",
            nargs="?",
            const=_STANDARD_OUTPUT,
            metavar="OUT",
            help=f"also write {_WHAT} to this file; without OUT, or with -: print it instead of the text",
        )
    else:
        parser.add_argument(
            "--json", action="store_const", const=_STANDARD_OUTPUT, help=f"print {_WHAT} instead of the text"
        )
    parser.set_defaults(document=document)


def out_file(text: str) -> Path:
    """Return a file to write, for `argparse`: minutes of work do not end at the name of a directory."""
    if Path(text).is_dir():
        raise argparse.ArgumentTypeError(f"found the directory {text}; expected a file to write")
    return Path(text)


def write_document(args: argparse.Namespace, document: Any) -> bool:
    """Write the document that `--json` requests; returns whether it was printed, so that no text is."""
    if args.json is None:
        return False
    plain = finite(document)
    if args.json != _STANDARD_OUTPUT:
        write_json(Path(args.json), plain)
        return False
    print(json.dumps(plain, indent=1, default=str))
    return True
