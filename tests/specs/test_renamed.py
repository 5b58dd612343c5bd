"""A device and a key that got other names: studies with the old ones load, keep their results, and print a notice."""

from pathlib import Path

import pytest
from studies import make_folder, write_study

from knobscope.devices.spec import load_device
from knobscope.identity import hash_identity
from knobscope.specs import load_study, select_fields
from knobscope.specs.reading.source import SpecErrors
from knobscope.workflow.pipeline import Pipeline

ROOT = Path(__file__).parents[2]
NOTICE = "device here is now called local-disk: write local-disk"
OLD = """
name: old
description: written for an earlier version
dbms: [sqlite]
devices: [here]
workloads: {ycsb-a: {records: 100}}
knobs:
  sqlite: {synchronous: }
"""


@pytest.fixture
def study(tmp_path: Path) -> Path:
    return write_study(make_folder(tmp_path), "old", OLD)


def test_a_study_that_uses_the_old_name_loads_with_a_notice(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    specs = load_study(study, tmp_path, runnable=False)
    assert [str(case) for case in specs.cases] == ["sqlite/here/ycsb-a"]
    assert capsys.readouterr().err == f"knobscope: {study}: {NOTICE}\n"
    study.write_text(OLD.replace("here", "local-disk"))
    load_study(study, tmp_path, runnable=False)
    assert capsys.readouterr().err == ""


def test_the_old_name_is_the_same_device_with_the_identity_that_it_had(capsys: pytest.CaptureFixture[str]) -> None:
    old = load_device("here", ROOT)
    assert capsys.readouterr().err == f"knobscope: {NOTICE}\n"
    assert hash_identity(select_fields(old, "run"), 16) == "1f9f2a760beddac0"
    assert hash_identity(select_fields(old, "profile"), 16) == "c809ffbf0aa16ae2"
    new = load_device("local-disk", ROOT)
    assert old.model_copy(update={"name": new.name, "renamed": None}) == new


def test_an_old_key_says_what_the_new_one_does_with_a_notice(
    study: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = OLD.replace("here", "local-disk")
    study.write_text(f"{text}remeasure: {{findings: 3}}\n")
    new = load_study(study, tmp_path, runnable=False)
    assert capsys.readouterr().err == ""
    study.write_text(f"{text}explain: {{findings: 3}}\n")
    old = load_study(study, tmp_path, runnable=False)
    assert capsys.readouterr().err == f"knobscope: {study}: key explain is now called remeasure: write remeasure\n"
    assert old.study.remeasure.findings == 3
    assert old == new
    # What Snakemake recorded of studies that were finished when the key had its old name.
    recorded = {"explain": {"findings": 3, "repeats": 4, "what_if": 0}}
    assert Pipeline(new, str(study)).remeasure_spec == recorded


@pytest.mark.parametrize(
    ("keys", "problem"),
    [
        ("explain: {findings: -1}", "explain.findings: found -1; expected greater than or equal to 0"),
        ("remeasure: {}\nexplain: {}", "explain: found an unknown key; expected "),
    ],
)
def test_a_problem_below_an_old_key_names_the_key_that_is_written(
    keys: str, problem: str, study: Path, tmp_path: Path
) -> None:
    study.write_text(OLD + keys)
    with pytest.raises(SpecErrors) as caught:
        load_study(study, tmp_path, runnable=False)
    assert f"{study}:{len((OLD + keys).splitlines())}: {problem}" in str(caught.value)
