"""What the machine can run is tried; what it lacks is said with the way to get it."""

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from emulated import require_loops
from json_documents import read_document
from studies import make_folder

from knobscope.cli import main

pytestmark = pytest.mark.real

ROOT = Path(__file__).parents[3]
SPEC = """\
name: nowhere
description: a DBMS that is not installed
programs:
  server: {find: [surely-not-here], install: setup/fleet.sh nowhere}
version: [server, --version]
readback: {file: "{data}/x", parser: ini}
knobs:
  a: {type: boolean, default: true, apply: restart, mechanism: other, source: https://example.org}
writing:
  restart: {argv: ["--{knob}={value}"]}
"""


def test_what_is_there_has_a_line_each_and_is_enough(prints: Callable[..., str]) -> None:
    said = prints("doctor", "--root", ROOT, "--json")
    findings = {row["name"]: row for row in read_document("doctor", said)}
    assert {path.stem for path in (ROOT / "specs/dbms").glob("*.yaml")} <= set(findings)
    assert {path.stem for path in (ROOT / "specs/generators").glob("*.yaml")} <= set(findings)
    assert findings["tpcds"]["usable"] or findings["tpcds"]["text"] == "no tpcds/bin/python; setup/fleet.sh tpcds"
    for name in ("ycsb", "java", "fio", "sqlite"):
        assert findings[name]["usable"], findings[name]
    assert int(findings["java"]["text"].split(".")[0]) >= 17


def test_what_is_missing_says_how_to_get_it_and_decides_on_the_exit_code(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "specs/dbms").mkdir(parents=True)
    (tmp_path / "specs/dbms/nowhere.yaml").write_text(SPEC)
    (tmp_path / "specs/dbms/wrong.yaml").write_text("name: wrong\n")
    assert main(["doctor", "--root", str(tmp_path), "--json"]) == 1
    rows = {row["name"]: row for row in read_document("doctor", capsys.readouterr().out) if row["group"] == "DBMS"}
    assert (rows["nowhere"]["usable"], rows["nowhere"]["required"]) == (False, False)
    assert rows["nowhere"]["text"] == "no surely-not-here; setup/fleet.sh nowhere"
    assert "knobscope validate" in rows["wrong"]["text"]


@pytest.mark.long
def test_a_missing_dbms_is_listed_with_one_that_is_there(tmp_path: Path, prints: Callable[..., str]) -> None:
    (tmp_path / "specs/dbms").mkdir(parents=True)
    (tmp_path / "specs/dbms/nowhere.yaml").write_text(SPEC)
    shutil.copy(ROOT / "specs/dbms/sqlite.yaml", tmp_path / "specs/dbms")
    assert "missing  DBMS      nowhere" in prints("doctor", "--root", tmp_path)


STUDY = """\
name: tiny
description: a study on a device of its own
dbms: [sqlite]
devices: [tiny]
workloads: {ycsb-a: }
knobs: {sqlite: {synchronous: {values: [off, full]}}}
"""
DEVICE = """\
name: tiny
description: a small file system of its own
tier: auto
emulate: {image_directory: %s, size: 64MiB, filesystem: ext4}
"""


def test_the_devices_of_a_study_are_brought_up_and_removed_again(
    open_directory: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    require_loops()
    make_folder(tmp_path, "devices")
    (tmp_path / "specs/studies/tiny.yaml").write_text(STUDY)
    (tmp_path / "specs/devices/tiny.yaml").write_text(DEVICE % open_directory)
    monkeypatch.chdir(tmp_path)
    assert main(["doctor", "tiny"]) == 0
    assert capsys.readouterr().out == "ok       device    tiny               comes up\n"
    assert list(open_directory.iterdir()) == []
    (tmp_path / "specs/devices/tiny.yaml").write_text((DEVICE % open_directory).replace("64MiB", "9000TiB"))
    assert main(["doctor", "tiny"]) == 1
    said = capsys.readouterr().out
    assert said.startswith("REQUIRED device    tiny ")
    assert "MiB free, and the image may grow to 9000TiB" in said
