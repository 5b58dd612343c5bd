"""Levels of a stack of storage: a loop device whose file lies on another loop device, and names in sysfs."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_devices import Fio, Loop, open_loop, run, watch_jobs

from knobscope.devices import BlockDevice, stacks
from knobscope.watch import open_watch
from knobscope.watch.text import format_profile

_READS = 64


@pytest.fixture(scope="module")
def upper(mounted: Loop) -> Iterator[Loop]:
    """A loop device of 8 MiB that are all allocated and on the lower one."""
    assert mounted.mount is not None
    with open_loop(mounted.mount / "upper", 8) as opened:
        run("dd", "if=/dev/urandom", f"of={opened.node}", "bs=1M", "count=8", "oflag=direct", "status=none")
        mounted.sync()
        yield opened


@pytest.mark.real
def test_each_level_has_what_reached_it(upper: Loop, mounted: Loop, direct: Fio) -> None:
    job = direct(upper.node, rw="randread", bs="16k", number_ios=_READS)
    with open_watch(upper.block, 4096, "device", prefer="procfs") as watch:
        profile = watch_jobs(watch, job)
    first, second = profile["levels"][:2]
    assert first["devices"] == [f"{upper.block.name} ({mounted.mount}/upper)"]
    assert second["devices"][0].startswith(f"{mounted.block.name} (")
    assert first["read_bytes"] == _READS * 16384
    beyond = second["read_bytes"] - first["read_bytes"]
    assert 0 <= beyond < 16384, "the file system between both may read its map of the file"
    assert first["read_amplification"] is None
    assert second["read_amplification"] == pytest.approx(1, abs=0.02)
    assert first["write_amplification"] is second["write_amplification"] is None
    assert f"{first['devices'][0]} " in format_profile(profile)


@pytest.fixture
def sysfs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A volume (253:1) on a mirror (9:0) of a disk's partition and a second disk."""
    for name, number in (("sda", "8:0"), ("sda/sda1", "8:1"), ("sdb", "8:16"), ("md0", "9:0"), ("dm-1", "253:1")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "dev").write_text(f"{number}\n")
    (tmp_path / "sda/sda1/partition").write_text("1\n")
    for below, above in (("sda/sda1", "md0"), ("sdb", "md0"), ("md0", "dm-1")):
        (tmp_path / above / "slaves").mkdir(exist_ok=True)
        (tmp_path / above / "slaves" / Path(below).name).symlink_to(tmp_path / below)
    for file, text in (("dm-1/dm/uuid", "LVM-x"), ("dm-1/dm/name", "vg-data"), ("md0/md/level", "raid1")):
        (tmp_path / file).parent.mkdir(exist_ok=True)
        (tmp_path / file).write_text(f"{text}\n")
    numbers = {(entry / "dev").read_text().strip(): entry for entry in (*tmp_path.glob("*"), tmp_path / "sda/sda1")}
    monkeypatch.setattr(stacks, "_find_directory", lambda major, minor: numbers[f"{major}:{minor}"])
    return tmp_path


@pytest.mark.usefixtures("sysfs")
def test_levels_lead_down_to_the_disks() -> None:
    levels = stacks.list_levels(BlockDevice("dm-1", 253, 1))
    assert [[block.name for block in level] for level in levels] == [["dm-1"], ["md0"], ["sda1", "sdb"]]
    assert [stacks.describe_level(level[0]) for level in levels] == ["dm-1 (LVM vg-data)", "md0 (raid1)", "sda1"]


@pytest.mark.usefixtures("sysfs")
def test_a_volume_lies_on_each_disk_below() -> None:
    for disk in (BlockDevice("sda", 8, 0), BlockDevice("sda1", 8, 1), BlockDevice("sdb", 8, 16)):
        assert stacks.lies_on(253, 1, disk)
        assert not stacks.lies_on(disk.major, disk.minor, BlockDevice("dm-1", 253, 1))
    assert stacks.is_stacked(253, 1)
    assert not stacks.is_stacked(8, 1)
