"""The pages under docs/ that are generated are what the program would write now."""

import argparse
from pathlib import Path

from knobscope.cli import build_parser
from knobscope.reference import render_reference

ROOT = Path(__file__).parents[1]


def test_command_reference_is_current() -> None:
    assert (ROOT / "docs/reference/cli.md").read_text() == render_reference(), "run `make docs`"


def test_a_command_by_itself_is_that_of_the_whole() -> None:
    whole = commands_of(build_parser())
    assert len(whole) > 20
    for name, parser in whole.items():
        assert commands_of(build_parser(name))[name].format_help() == parser.format_help()


def commands_of(parser: argparse.ArgumentParser) -> dict[str, argparse.ArgumentParser]:
    (action,) = (action for action in parser._actions if isinstance(action, argparse._SubParsersAction))
    return dict(action.choices)


def test_every_argument_has_a_help_text() -> None:
    assert "|  |" not in render_reference()


def test_help_names_every_stage_in_order() -> None:
    text = build_parser().format_help()
    stages = ["plan", "characterise", "prepare", "measure", "select", "detect", "explain", "confirm", "report"]
    offsets = [text.index(f"\n    {stage}") for stage in stages]
    assert offsets == sorted(offsets)
