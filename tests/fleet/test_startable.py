"""`knobscope startable` on real servers: what the catalogue allows and the server refuses, and what it clamps."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
from shipped_specs import ROOT, shipped_dbms

from knobscope.cli import main
from knobscope.commands.startable import open_trials

pytestmark = pytest.mark.real


@pytest.fixture
def shelf(tmp_path: Path) -> Path:
    shutil.copytree(ROOT / "specs/dbms", tmp_path / "specs/dbms")
    return tmp_path


def find(shelf: Path, dbms: str, *knobs: str) -> dict[str, Any]:
    named = [word for knob in knobs for word in ("--knob", knob)]
    assert main(["startable", dbms, *named, "--root", str(shelf)]) == 0
    (file,) = (shelf / "specs/startable").glob(f"{dbms}-*.json")
    content: dict[str, Any] = json.loads(file.read_text())
    return content


@pytest.mark.long
def test_mariadb_does_not_start_with_the_least_pool_of_its_catalogue(shelf: Path) -> None:
    record = find(shelf, "mariadb", "innodb_buffer_pool_size")
    pool = record["knobs"]["innodb_buffer_pool_size"]
    assert record["version"].startswith("10.11.")
    assert pool["asked"] == [2097152, 536870912]
    assert pool["below"]["value"] < 6 << 20 <= pool["startable"][0] < 7 << 20
    assert pool["startable"][1] == 536870912
    assert "innodb_buffer_pool_size" in pool["below"]["words"]


@pytest.mark.long
def test_what_is_recorded_is_not_started_again(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = find(shelf, "redis", "hz")
    assert first["knobs"]["hz"] == {"asked": [1, 500], "startable": [1, 500]}
    capsys.readouterr()
    second = find(shelf, "redis", "hz", "io-threads")
    words = capsys.readouterr().err
    assert "[1/2] hz: recorded already" in words
    assert "[2/2] io-threads: starts in" in words
    assert second["knobs"]["hz"] == first["knobs"]["hz"]


@pytest.mark.long
def test_a_record_of_another_version_stays_as_it_is(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A call for one knob on another minor version used to overwrite the whole shipped record."""
    shipped = json.loads((ROOT / "specs/startable/redis-7.json").read_text())
    other = shelf / "specs/startable/redis-7.json"
    other.parent.mkdir()
    other.write_text(json.dumps({**shipped, "version": "7.0.0"}))
    before = other.read_text()
    assert main(["startable", "redis", "--knob", "hz", "--root", str(shelf)]) == 0
    told = capsys.readouterr()
    assert "redis-7.json is of version 7.0.0 and stays as it is" in told.err
    assert other.read_text() == before
    beside = json.loads(Path(told.out.strip()).read_text())
    assert Path(told.out.strip()).name == f"redis-{beside['version']}.json"
    assert list(beside["knobs"]) == ["hz"]
    assert main(["startable", "redis", "--knob", "io-threads", "--root", str(shelf)]) == 0
    assert list(json.loads(Path(told.out.strip()).read_text())["knobs"]) == ["hz", "io-threads"]


@pytest.mark.long
def test_a_clamped_value_is_reported(shelf: Path) -> None:
    text = (shelf / "specs/dbms/redis.yaml").read_text()
    assert text.count("range: [1, 500]") == 1
    (shelf / "specs/dbms/redis.yaml").write_text(text.replace("range: [1, 500]", "range: [1, 100000]"))
    assert find(shelf, "redis", "hz")["knobs"]["hz"]["read_back"] == {"100000": "500"}


def test_nothing_is_left_behind() -> None:
    redis = shipped_dbms("redis")
    with open_trials(redis) as trials:
        assert trials.refuse("io-threads", 1) is None
        assert "argument must be between" in str(trials.refuse("io-threads", 1000))
        assert {path.name for path in trials.folder.iterdir()} == {"empty", "init.log"}
    assert not trials.folder.exists()


MARIADB_STUDY = """\
name: mine
description: One value that MariaDB refuses and one knob that it rounds, among others.
dbms: [mariadb]
devices: [memory]
workloads: {ycsb-a: {threads: 2}}
knobs:
  mariadb:
    ignore_builtin_innodb:
    innodb_doublewrite:
    innodb_flush_neighbors:
    innodb_prefix_index_cluster_optimization:
    join_buffer_size: {range: [262147, 1000003]}
    sort_buffer_size:
sampling: {runs_per_round: 4, max_rounds: 1, levels: 2}
"""


@pytest.mark.long
def test_a_study_with_a_deadly_value_is_bisected(shelf: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for kind in ("devices", "workloads", "generators"):
        shutil.copytree(ROOT / "specs" / kind, shelf / "specs" / kind)
    (shelf / "specs/studies").mkdir()
    study = shelf / "specs/studies/mine.yaml"
    study.write_text(MARIADB_STUDY)
    assert main(["startable", "mariadb", "--study", str(study), "--root", str(shelf), "--trials", "60"]) == 0
    (file,) = (shelf / "specs/startable").glob("mariadb-*.json")
    found = {json.dumps(one["values"]): one for one in json.loads(file.read_text())["refused"]}
    assert "unknown variable" in found.pop('{"ignore_builtin_innodb": true}')["words"]
    assert found
    assert all(one["becomes"] == one["values"]["join_buffer_size"] // 128 * 128 for one in found.values())
    assert "that the study now draws were tried and start" in capsys.readouterr().err
