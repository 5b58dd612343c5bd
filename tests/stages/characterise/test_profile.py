"""Device profiles, measured on a real loop device with few points."""

import argparse
import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from knobscope.devices import OpenDevice
from knobscope.errors import UserError
from knobscope.stages.characterise import command, profile, properties
from knobscope.stages.characterise.kernel import read_kernel_facts
from knobscope.stages.characterise.others import Others
from knobscope.stages.characterise.properties import describe_agreement, lower_confidence
from knobscope.stages.characterise.schedule import QUICK
from knobscope.tables import TABLES

pytestmark = pytest.mark.real

TINY = replace(
    QUICK,
    read_depths=(1, 8),
    write_depths=(1,),
    write_sizes=(4096, 32768),
    file_bytes=32 << 20,
    window_ms=50,
    repeats=1,
    requests=1,
    read_requests=1,
    replay_ms=300,
    finer_depths=1,
)


@pytest.fixture(scope="module")
def found(loop: OpenDevice) -> dict[str, Any]:
    return profile.measure_profile(loop, TINY)


def test_profile_has_the_columns_of_the_tables(loop: OpenDevice, found: dict[str, Any]) -> None:
    assert set(found) == set(TABLES["device_profile"]) | {"block_identity", "curves", "properties", "method"}
    assert all(set(row) == set(TABLES["device_curve"]) for row in found["curves"])
    assert all(set(row) == set(TABLES["device_property"]) for row in found["properties"])
    absent = {name for name, value in found.items() if value is None}
    may_be_absent = {"write_unit_bytes", "write_unit_us", "preferred_write_bytes", "saturating_depth"}
    assert absent <= may_be_absent
    assert (found["device"], found["block_device"], found["filesystem"]) == ("loop", loop.block.name, "ext4")
    assert list(loop.directory.iterdir()) == []


def test_figures_of_the_profile_come_from_its_curves(found: dict[str, Any]) -> None:
    rows = {(row["curve"], row["pattern"], row["block_bytes"], row["queue_depth"]): row for row in found["curves"]}
    reads = [row["iops"] for row in found["curves"] if (row["curve"], row["pattern"]) == ("queue_depth", "randread")]
    assert found["fsync_rate"] == rows["commit", "randwrite", 4096, 1]["iops"]
    assert found["random_read_iops_qd1"] == rows["queue_depth", "randread", 4096, 1]["iops"]
    assert found["random_read_iops_best"] == max(reads)
    # At depth one a mean flush takes no longer than a whole cycle of write and flush; no median is above two means.
    assert 0 < found["flush_p50_us"] <= 2e6 / rows["flush", "randwrite", 4096, 1]["iops"]
    for row in found["curves"]:
        assert row["bytes_per_s"] == pytest.approx(row["iops"] * row["block_bytes"], rel=0.05)


def test_every_property_says_how_sure_it_is_and_why(found: dict[str, Any]) -> None:
    rows = {row["property"]: row for row in found["properties"]}
    assert {"write_unit", "flush", "saturating_depth", "reads_beside_writes", "atomic_write"} <= set(rows)
    assert all(row["confidence"] in ("high", "medium", "low", "not measured") for row in rows.values())
    assert all(row["because"] for row in rows.values())
    resting = {name for name in rows for start in properties._CURVES if name.startswith(start)}
    assert rows.keys() - resting == {"atomic_write"}, "the confidence of each follows what others did meanwhile"
    assert "minimum_io_size 512" in rows["write_unit"]["kernel"]
    assert "hardware_queues 1" in rows["saturating_depth"]["kernel"]


@pytest.mark.long
def test_a_busy_machine_lowers_confidence_and_is_named(loop: OpenDevice) -> None:
    """Whatever rounds say: while others keep all processors busy, nothing that was measured is sure."""
    program = [sys.executable, "-c", "while True: pass"]
    others = [subprocess.Popen(program) for _ in range(2 * len(os.sched_getaffinity(0)))]
    try:
        rows = profile.measure_profile(loop, TINY)["properties"]
    finally:
        for process in others:
            process.kill()
            process.wait()
    measured = [row for row in rows if row["confidence"] != "not measured"]
    assert {row["confidence"] for row in measured} == {"low"}
    assert all("in the pauses between measurements, processors were" in row["others"] for row in measured)


@pytest.mark.parametrize(
    ("row", "pauses", "confidence"),
    [
        (("flush", "high"), [Others(0.02, 0.01, 0.0)], "high"),
        (("flush", "high"), [Others(0.2, None, 0.0)], "medium"),
        (("flush", "high"), [Others(0.02, 0.01, 0.6)], "low"),  # the device itself
        (("flush", "high"), [Others(0.0, 0.9, 0.0), Others(0.0, 0.0, 0.0)], "low"),  # on average
        (("flush", "low"), [Others(0.2, 0.0, 0.0)], "low"),
        (("atomic_write", "not measured"), [Others(0.9, 0.9, 0.9)], "not measured"),
        (("saturating_depth", "high"), [Others(0.9, 0.9, 0.9)], "high"),  # that was at another time
    ],
)
def test_confidence_is_that_of_the_rounds_or_of_the_machine(
    row: tuple[str, str], pauses: list[Others], confidence: str
) -> None:
    known = {"property": row[0], "confidence": row[1], "because": "3 rounds", "others": None}
    found = lower_confidence(known, {"flush": pauses})
    assert found["confidence"] == confidence
    assert ("pauses" in (found["others"] or "")) == (row[0] == "flush" and confidence != "high")


@pytest.mark.parametrize(
    ("values", "said"),
    [((100.0, 104.0), "2 rounds differ by 3.9 % of"), ((10.0, 50.0), "2 rounds differ by 1.3 times")],
)
def test_rounds_that_differ_by_more_than_their_median_differ_by_a_factor(values: tuple[float, ...], said: str) -> None:
    assert describe_agreement(values)[1].replace("\N{NO-BREAK SPACE}", " ") == f"{said} their median"


def test_what_the_kernel_says_is_read_from_sysfs(loop: OpenDevice) -> None:
    queue = Path("/sys/block", loop.block.name, "queue")
    facts = read_kernel_facts(loop.block)
    assert facts.logical_block_size == int((queue / "logical_block_size").read_text())
    assert facts.write_cache == (queue / "write_cache").read_text().strip()
    assert facts.hardware_queues == 1


def call(*arguments: str) -> int:
    parser = argparse.ArgumentParser()
    command.add_parser(parser.add_subparsers())
    args = parser.parse_args(["characterise", *arguments])
    return int(args.run(args))


def test_command_writes_the_profile_and_prints_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], loop: OpenDevice
) -> None:
    monkeypatch.setitem(profile._SCHEDULES, "quick", TINY)
    spec = f"name: here\ndescription: a disk\ntier: sata_ssd\npath: {loop.directory}\n"
    (tmp_path / "here.yaml").write_text(spec)
    out = tmp_path / "out" / "profile.json"
    assert call(str(tmp_path / "here.yaml"), "--root", str(tmp_path), "--out", str(out)) == 0
    found = json.loads(out.read_text())
    assert (found["device"], found["tier_rank"]) == ("here", 2)
    shown = capsys.readouterr()
    assert "characterise here: 1/" in shown.err
    assert all(f"{row['property']}: " in shown.out for row in found["properties"])
    assert sorted(path.name for path in tmp_path.iterdir()) == ["here.yaml", "out"]


@pytest.mark.parametrize("arguments", [[], ["here", "--device", "here"], ["--device", "here"]])
def test_command_must_know_what_to_characterise(tmp_path: Path, arguments: list[str]) -> None:
    with pytest.raises(UserError, match="characterise what"):
        call(*arguments, "--out", str(tmp_path / "profile.json"))
