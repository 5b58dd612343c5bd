"""The pages under docs/ that are generated are what the program would write now."""

import argparse
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.cli import build_parser, main
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
    stages = ["plan", "characterise", "prepare", "measure", "select", "detect", "remeasure", "imitate", "report"]
    offsets = [text.index(f"\n    {stage}") for stage in stages]
    assert offsets == sorted(offsets)


@pytest.mark.parametrize(("typed", "expected"), [("rnak", "rank (did you mean that?)"), ("x", "one of job, init, ")])
def test_a_command_that_does_not_exist_is_told_the_nearest(
    typed: str, expected: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([typed, "table.csv"])
    assert ended.value.code == 2
    assert f"knobscope: no command {typed!r}; expected {expected}" in capsys.readouterr().err


@pytest.mark.parametrize(
    "command",
    ["characterise d --out", "attach --pid 1 --html", "replay t.csv --response y --html"],
)
def test_minutes_of_work_do_not_end_at_the_name_of_a_directory(
    command: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main([*command.split(), str(tmp_path)])
    assert ended.value.code == 2
    assert f"found the directory {tmp_path}; expected a file to write" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("repeat", "reinforce"),
        ("explain --explained", "remeasure --remeasured"),
        ("confirm --confirmed", "imitate --imitated"),
    ],
)
def test_a_command_with_its_old_name_is_the_new_one_with_a_notice(
    old: str, new: str, tmp_path: Path, refuses: Callable[..., str]
) -> None:
    study, database = str(tmp_path / "no-study.yaml"), str(tmp_path / "explain")  # a value that is also an old name
    rest = ["--study", study, "--database", database, "--out", database]
    if old == "repeat":
        rest = ["--study", study, "--case", "a/b/c", "--runs", database, "--plans", database, "--out", database]
    words, options = old.split()[:1], [word for option in old.split()[1:] for word in (option, database)]
    notice, problem = refuses(*words, *rest, *options).split("\n", 1)
    assert notice == f"knobscope: {old} is now called {new}: write {new}"
    assert "no-study.yaml" in problem
    assert old.split(maxsplit=1)[0] not in commands_of(build_parser())


def test_ctrl_c_while_a_command_is_loaded_ends_it(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def press(_: str | None) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("knobscope.cli.build_parser", press)
    assert main(["doctor"]) == 130
    assert capsys.readouterr().err == "knobscope: interrupted\n"
