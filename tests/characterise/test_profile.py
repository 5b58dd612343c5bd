"""Device profiles, measured on a real loop device with few points."""

import argparse
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knobscope.characterise import command, profile
from knobscope.characterise.curves import PAGE, Point, Schedule
from knobscope.devices import OpenDevice
from knobscope.errors import UserError
from knobscope.tables import TABLES

pytestmark = pytest.mark.real

TINY = Schedule(
    "quick",
    (
        *(Point("write_size", "randwrite", size * 1024, 4) for size in (4, 32)),
        Point("write_size_fsync", "randwrite", PAGE, 1),
        *(Point("queue_depth", "randread", PAGE, depth) for depth in (1, 8)),
        Point("queue_depth", "read", PAGE, 1),
    ),
    file_bytes=32 << 20,
    window_ms=100,
    repeats=2,
    seconds=60,
)


@pytest.fixture(scope="module")
def found(loop: OpenDevice) -> dict[str, Any]:
    """A profile of nine rounds at most that must not take any time: one round is made."""
    return profile.measure_profile(loop, replace(TINY, repeats=9, seconds=0))


def test_profile_has_the_columns_of_the_tables(loop: OpenDevice, found: dict[str, Any]) -> None:
    assert set(found) == set(TABLES["device_profile"]) | {"curves", "method"}
    assert all(set(row) == set(TABLES["device_curve"]) for row in found["curves"])
    assert None not in found.values()
    assert (found["device"], found["block_device"], found["filesystem"]) == ("loop", loop.block.name, "ext4")
    assert list(loop.directory.iterdir()) == []


def test_no_round_is_begun_that_would_not_end_in_time(found: dict[str, Any]) -> None:
    assert found["method"]["rounds"] == 1


def test_figures_of_the_profile_come_from_its_curves(found: dict[str, Any]) -> None:
    iops = {
        (row["curve"], row["pattern"], row["block_bytes"], row["queue_depth"]): row["iops"] for row in found["curves"]
    }
    assert found["fsync_rate"] == iops["write_size_fsync", "randwrite", 4096, 1]
    assert found["random_read_iops_qd1"] == iops["queue_depth", "randread", 4096, 1]
    assert found["random_read_iops_best"] == max(iops["queue_depth", "randread", 4096, depth] for depth in (1, 8))
    assert found["fsync_rate"] < iops["write_size", "randwrite", 4096, 4]  # a flush after each write costs something
    for row in found["curves"]:
        assert row["bytes_per_s"] == pytest.approx(row["iops"] * row["block_bytes"], rel=0.05)


def call(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["characterise", *arguments])
    return int(args.run(args))


def test_command_writes_the_profile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(profile._SCHEDULES, "quick", TINY)
    (tmp_path / "here.yaml").write_text("name: here\ndescription: a disk\ntier: sata_ssd\npath: .\n")
    out = tmp_path / "out" / "profile.json"
    assert call(str(tmp_path / "here.yaml"), "--root", str(tmp_path), "--out", str(out)) == 0
    found = json.loads(out.read_text())
    assert (found["device"], found["tier_rank"]) == ("here", 2)
    shown = capsys.readouterr().err
    assert "characterise here: 1/12 randwrite 4k depth 4" in shown
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.yaml", "out"]


@pytest.mark.parametrize("arguments", [[], ["here", "--device", "here"], ["--device", "here"]])
def test_command_must_know_what_to_characterise(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(UserError, match="characterise what"):
        call(*arguments, "--out", str(tmp_path / "profile.json"))
