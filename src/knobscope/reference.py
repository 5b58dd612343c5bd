"""Writes the reference of all commands, and JSON Schemas of their documents, from the parser.

`python -m knobscope.reference docs/reference` writes cli.md and the folder schemas there.
"""

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from knobscope.cli import build_parser
from knobscope.examples import EXAMPLES
from knobscope.tables.json_schema import render_schema


def render_reference() -> str:
    """Return the page: one section per command, one row per argument."""
    commands = _commands()
    summaries = {choice.dest: choice.help or "" for choice in commands._choices_actions}
    parts = [
        "# Commands\n\nWritten by `make docs` from the program. "
        "Exit code 0: done; 1: failed; 2: wrong input, nothing was done.\n\n"
        "A command that prints an answer has `--json`: it prints a document for scripts instead of the text. Keys of "
        "documents are an interface: later versions may add some, and change the meaning of none.\n",
        ", ".join(f"[`{name}`](#{name})" for name in commands.choices) + ". `knobscope --help` says what each is for.",
    ]
    for name, command in commands.choices.items():
        parts += [f"\n## {name}\n\n{command.description or summaries[name]}\n", "| argument | meaning |\n|---|---|"]
        parts += _rows(command)
        if command.get_default("document") is not None:
            parts += ["", f"[JSON Schema](schemas/{name}.json) of the document that `--json` prints."]
        parts += ["", "```sh", *EXAMPLES.get(name, []), "```"]
    return "\n".join(parts) + "\n"


def render_schemas() -> dict[str, str]:
    """Return the text of a JSON Schema by command, of those that have `--json`."""
    documents = {name: command.get_default("document") for name, command in _commands().choices.items()}
    return {
        name: json.dumps(render_schema(document), indent=2) + "\n"
        for name, document in documents.items()
        if document is not None
    }


def _commands() -> "argparse._SubParsersAction[argparse.ArgumentParser]":
    return next(a for a in build_parser()._actions if isinstance(a, argparse._SubParsersAction))


def _rows(parser: argparse.ArgumentParser) -> Iterator[str]:
    for action in parser._actions:
        if isinstance(action, argparse._HelpAction):
            continue
        if isinstance(action, argparse._SubParsersAction):
            for name, command in action.choices.items():
                yield f"| `{name}` | {command.description or ''} |"
                yield from (row.replace("| `", f"| `{name} ", 1) for row in _rows(command))
            continue
        yield f"| {_name(action)} | {_meaning(action)} |"


def _name(action: argparse.Action) -> str:
    metavar = action.metavar if isinstance(action.metavar, str) else action.dest.upper()
    if action.choices is not None:
        metavar = ", ".join(map(str, action.choices))
    if not action.option_strings:
        return f"`{metavar}`"
    return f"`{', '.join(action.option_strings)}`" + ("" if action.nargs == 0 else f" `{metavar}`")


def _meaning(action: argparse.Action) -> str:
    text = (action.help or "").replace("%(default)s", str(action.default)).replace("%%", "%")
    plain = action.default not in (None, False, argparse.SUPPRESS, [], Path())
    default = f" (default: {action.default})" if plain and "default" not in text else ""
    return f"{text}{' (required)' if action.required and action.option_strings else ''}{default}".replace("|", "\\|")


if __name__ == "__main__":
    folder = Path(sys.argv[1])
    (folder / "cli.md").write_text(render_reference(), encoding="utf-8")
    for command_name, text in render_schemas().items():
        (folder / "schemas" / f"{command_name}.json").write_text(text, encoding="utf-8")
