"""A device that got another name: studies with the old one load, runs keep their identity, and a notice is printed."""

from pathlib import Path

import pytest

from knobscope.devices.spec import load_device
from knobscope.identity import hash_identity
from knobscope.specs import load_study, select_fields

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


def test_a_study_that_uses_the_old_name_loads_with_a_notice(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "specs/studies").mkdir(parents=True)
    for kind in ("dbms", "devices", "workloads"):
        (tmp_path / "specs" / kind).symlink_to(ROOT / "specs" / kind)
    study = tmp_path / "specs/studies/old.yaml"
    study.write_text(OLD)
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
