"""The pages under docs/ that are generated are what the program would write now."""

from pathlib import Path

from knobscope.cli import build_parser
from knobscope.reference import render_reference

ROOT = Path(__file__).parents[1]


def test_command_reference_is_current() -> None:
    assert (ROOT / "docs/cli.md").read_text() == render_reference(), "run `make docs`"


def test_every_argument_has_a_help_text() -> None:
    assert "|  |" not in render_reference()


def test_help_names_every_stage_in_order() -> None:
    text = build_parser().format_help()
    stages = ["plan", "characterise", "prepare", "measure", "select", "detect", "confirm", "report"]
    places = [text.index(f"\n    {stage}") for stage in stages]
    assert places == sorted(places)
