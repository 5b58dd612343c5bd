"""Which disks have the requests of a device, by directories as sysfs has them in the guests of `make test-kernels`."""

from pathlib import Path

import disk
import pytest
from kernel import UnavailableError


@pytest.fixture
def block_class(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(disk, "_BLOCK_CLASS", tmp_path)
    return tmp_path


def add(block_class: Path, name: str, *, has_queues: bool) -> Path:
    (block_class / name / "mq" if has_queues else block_class / name).mkdir(parents=True)
    return block_class / name


def test_a_disk_with_queues_has_its_own_requests(block_class: Path) -> None:
    own = add(block_class, "nvme0n1", has_queues=True)
    add(block_class, "nvme0c0n1", has_queues=True)
    assert disk._find_path(own) == own


def test_a_multipath_device_is_followed_by_its_path(block_class: Path) -> None:
    head = add(block_class, "nvme1n1", has_queues=False)
    path = add(block_class, "nvme1c1n1", has_queues=True)
    add(block_class, "nvme1c1n2", has_queues=True)
    add(block_class, "nvme11c1n1", has_queues=True)
    assert disk._find_path(head) == path


def test_several_paths_are_refused_by_their_names(block_class: Path) -> None:
    head = add(block_class, "nvme1n1", has_queues=False)
    for name in ("nvme1c1n1", "nvme1c2n1"):
        add(block_class, name, has_queues=True)
    with pytest.raises(UnavailableError, match=r"2 paths \(nvme1c1n1, nvme1c2n1\)"):
        disk._find_path(head)


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A volume (253:1) on dm-crypt (253:0) on a partition of one disk, and on all of another disk."""
    for name, number in (("sda", "8:0"), ("sda/sda1", "8:1"), ("sda/sda2", "8:2"), ("sdb", "8:16"), ("dm-0", "253:0"),
                         ("dm-1", "253:1")):  # fmt: skip
        directory = tmp_path / "devices" / name
        directory.mkdir(parents=True)
        (directory / "dev").write_text(f"{number}\n")
        (tmp_path / number).symlink_to(directory)
        if name in ("sda", "sdb"):
            (directory / "mq/0").mkdir(parents=True)
            (directory / "queue").mkdir()
            (directory / "mq/0/nr_tags").write_text("31")
            (directory / "queue/nr_requests").write_text("64")
        for file, text in (("partition", name[-1:]), ("start", "2048"), ("size", "1000")):
            if "/" in name or file == "size":
                (directory / file).write_text(text)
    for lower, upper in (("sda/sda2", "dm-0"), ("dm-0", "dm-1"), ("sdb", "dm-1")):
        for folder, target in ((f"{lower}/holders", upper), (f"{upper}/slaves", lower)):
            (tmp_path / "devices" / folder).mkdir(exist_ok=True)
            (tmp_path / "devices" / folder / Path(target).name).symlink_to(tmp_path / "devices" / target)
    monkeypatch.setattr(disk, "_BLOCK_NUMBERS", tmp_path)
    return tmp_path


def test_a_volume_is_followed_on_all_disks_below(stack: Path) -> None:
    volume = disk.find_disk("253:1")
    ranges = [(part.requests.name, part.first_sector, part.end_sector) for part in volume.parts]
    assert ranges == [("sda", 2048, 3048), ("sdb", 0, 2**64 - 1)]
    assert volume.queues == 2
    assert set(volume.uppers) == {"253:0", "253:1"}
    assert volume.list_devices() == ("253:1",)


def test_of_a_disk_what_is_stacked_on_it_counts(stack: Path) -> None:
    whole = disk.find_disk("8:0")
    assert [part.requests.name for part in whole.parts] == ["sda"]
    assert set(whole.uppers) == {"253:0", "253:1"}
    assert set(whole.list_devices()) == {"8:0", "8:1", "8:2", "253:0", "253:1"}
    assert disk.find_disk("8:1").uppers == ()


def test_two_partitions_of_a_disk_are_the_disk(stack: Path) -> None:
    (stack / "devices/dm-0/slaves/sda1").symlink_to(stack / "devices/sda/sda1")
    (part,) = disk.find_disk("253:0").parts
    assert (part.requests.name, part.first_sector, part.end_sector) == ("sda", 0, 2**64 - 1)


def test_a_device_on_nothing_is_refused(stack: Path) -> None:
    (stack / "devices/dm-0/slaves/sda2").unlink()
    with pytest.raises(UnavailableError, match=r"dm-0 \(253:0\) is bio-based and has no requests, nor a disk below it"):
        disk.find_disk("253:0")
