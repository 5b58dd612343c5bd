"""Runs of SQLite on file systems that a study varies: each is made, used, read back, and gone with its device."""

import json
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulated import find_direct_memory, require_loops
from studies import make_folder

from knobscope.devices import take_down
from knobscope.devices.mounts import list_mounts
from knobscope.durable_files import write_sealed
from knobscope.specs import Case, StudySpecs, load_study
from knobscope.stages.measure import BlockProgress, open_measurer
from knobscope.stages.plan.blocks import config_id_of, load_id_of
from knobscope.tables import PlanRow, RunRecord

pytestmark = pytest.mark.real
STUDY = """
name: tiny
description: SQLite on several file systems
dbms: [sqlite]
devices: [image]
workloads:
  ycsb-a: {records: 100, threads: 1, warmup_s: 0.1, measure_s: 0.4}
knobs:
  sqlite: {synchronous: {values: [off, full]}}
factors:
  filesystem: %s
monitor: procfs
"""
DEVICE = """
name: image
description: an image of its own
tier: nvme_ssd
emulate: {image_directory: %s, size: 300MiB}
"""
CASE = Case("sqlite", "image", "ycsb-a")


@pytest.fixture
def images(open_directory: Path) -> Iterator[Path]:
    """A directory in main memory, whose lock nobody else waits for."""
    require_loops()
    with tempfile.TemporaryDirectory(dir=find_direct_memory(open_directory)) as name:
        Path(name).chmod(0o711)
        yield Path(name)


def make_study(directory: Path, images: Path, factors: str) -> StudySpecs:
    make_folder(directory, "devices")
    (directory / "specs/devices/image.yaml").write_text(DEVICE % images)
    (directory / "specs/studies/tiny.yaml").write_text(STUDY % factors)
    write_sealed(directory / "image.json", {"preferred_write_bytes": 16384, "tier": "nvme_ssd"})
    return load_study(directory / "specs/studies/tiny.yaml", directory)


def plan_row(specs: StudySpecs, configuration: dict[str, Any], position: int) -> PlanRow:
    return {
        "block_id": "block",
        "phase": "sweep",
        "round": 1,
        "position": position,
        "config_id": config_id_of("sqlite", configuration),
        "is_sentinel": False,
        "repeat": 0,
        "load_id": load_id_of(specs.dbms["sqlite"], configuration),
        "configuration": json.dumps(configuration),
        "is_chosen": False,
    }


def measure(specs: StudySpecs, directory: Path, *filesystems: dict[str, Any]) -> list[RunRecord]:
    progress = BlockProgress("test", len(filesystems), {})
    with open_measurer(specs, CASE, directory, directory / "image.json", directory / "store", progress) as measurer:
        configurations = [{"synchronous": "full", **filesystem} for filesystem in filesystems]
        return [measurer.measure(plan_row(specs, values, i)) for i, values in enumerate(configurations)]


def effective(record: RunRecord) -> dict[str, str]:
    assert record["run"]["status"] == "ok", record["run"]
    return {
        row["knob"]: row["effective"] for row in record["effective_values"] if row["knob"].startswith("filesystem.")
    }


def test_a_run_lies_on_the_file_system_that_its_configuration_names(images: Path, tmp_path: Path) -> None:
    specs = make_study(tmp_path, images, "{type: [ext4, xfs]}")
    try:
        (record,) = measure(specs, tmp_path, {"filesystem.type": "xfs"})
        mounted = {mount.point.parent.name: mount.filesystem for mount in list_mounts()}
        assert (mounted["image"], mounted["image.xfs-4096"]) == ("ext4", "xfs")
    finally:
        assert take_down(specs.devices["image"], tmp_path)
    assert effective(record) == {"filesystem.type": "xfs"}
    assert record["run"]["aligned_to_bytes"] == 16384
    assert not (images / ".knobscope-devices").exists()  # both are gone


@pytest.mark.long
def test_every_file_system_of_a_study_is_a_device_of_its_own(images: Path, tmp_path: Path) -> None:
    specs = make_study(tmp_path, images, "{type: [ext4, xfs], block_bytes: [4096, 1024]}")
    kinds = [("ext4", 4096), ("ext4", 1024), ("xfs", 4096), ("xfs", 1024)]
    try:
        records = measure(
            specs, tmp_path, *({"filesystem.type": name, "filesystem.block_bytes": size} for name, size in kinds)
        )
    finally:
        take_down(specs.devices["image"], tmp_path)
    assert [effective(record) for record in records] == [
        {"filesystem.type": name, "filesystem.block_bytes": str(size)} for name, size in kinds
    ]
    assert len({record["run"]["run_id"] for record in records}) == len(kinds)


@pytest.mark.long
def test_ext4_without_a_journal_writes_less(images: Path, tmp_path: Path) -> None:
    specs = make_study(tmp_path, images, "{journal: [true, false]}")
    try:
        records = measure(specs, tmp_path, {"filesystem.journal": True}, {"filesystem.journal": False})
    finally:
        take_down(specs.devices["image"], tmp_path)
    assert [effective(record) for record in records] == [
        {"filesystem.journal": "True"},
        {"filesystem.journal": "False"},
    ]
    written = [
        sum(row["bytes"] for row in record["io_profile"] if row["op"] == "write") / record["run"]["operations"]
        for record in records
    ]
    assert written[1] < written[0]
