"""Which disk has the requests of a device, by directories as sysfs has them in the guests of `make test-kernels`."""

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
