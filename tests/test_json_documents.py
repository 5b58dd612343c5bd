"""Every command that prints an answer has `--json`, and the schemas of the reference are those of its documents."""

from collections.abc import Callable
from pathlib import Path

from json_documents import SCHEMAS, read_document
from test_reference import commands_of

from knobscope.cli import build_parser
from knobscope.reference import render_schemas

#: Commands without `--json`: what they do has no answer, or that is a file of JSON, Parquet or YAML already.
NO_ANSWER = {
    *("job", "init", "schema", "drivers", "devices"),
    *("plan", "characterise", "prepare", "measure", "select", "reinforce", "tune", "detect", "remeasure", "imitate"),
    *("report", "crate", "startable", "models", "export", "import"),
}


def test_schemas_on_disk_are_current() -> None:
    assert {path.stem: path.read_text() for path in SCHEMAS.glob("*.json")} == render_schemas(), "run `make docs`"


def test_every_command_has_a_document_or_no_answer() -> None:
    commands = commands_of(build_parser())
    has_json = {name for name, parser in commands.items() if "--json" in parser._option_string_actions}
    assert has_json == set(render_schemas())
    assert has_json | NO_ANSWER == set(commands)
    assert not has_json & NO_ANSWER


def test_rules_as_a_document(prints: Callable[..., str]) -> None:
    said = prints("rules", "--json")
    rules = {rule["name"]: rule for rule in read_document("rules", said)["rules"]}
    page = prints("rules")
    assert len(rules) > 10
    for name, rule in rules.items():
        assert f"## {name}\n\n**{rule['title']}.** Claim: {rule['claim']}" in page
        assert set(rule["header"]) >= {"Source", "Needs", "Insufficient"}


def test_a_file_and_standard_output_get_the_same_document(tmp_path: Path, prints: Callable[..., str]) -> None:
    trace, out = tmp_path / "trace.csv", tmp_path / "profile.json"
    trace.write_text("ts_ns,lba,len_sectors,op\n0,0,8,W\n1000,8,8,R\n")
    assert "requests" in prints("trace", trace, "--json", out)
    assert read_document("trace", prints("trace", trace, "--json")) == read_document("trace", out.read_text())
