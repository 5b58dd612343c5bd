"""What lies below block devices of this machine."""

import os
from pathlib import Path

import pytest

from knobscope.devices import find_block_device, open_device, take_down
from knobscope.devices.disks import find_bottom_disks, find_tier
from knobscope.devices.mounts import find_mount, list_mounts
from knobscope.specs import Device, Emulation


def test_bottom_of_a_disk_has_no_partition_above_it(tmp_path: Path) -> None:
    disks = find_bottom_disks(find_block_device(tmp_path))
    assert disks
    assert all(Path("/sys/block", disk.name).is_dir() for disk in disks)


@pytest.mark.real
def test_loop_device_ends_on_the_disk_of_its_image(tmp_path: Path, emulated: Device) -> None:
    below = find_block_device(tmp_path)
    with open_device(emulated, tmp_path, "study") as opened:
        assert opened.block.name.startswith("loop")
        assert find_bottom_disks(opened.block) == find_bottom_disks(below)
        assert opened.tier == find_tier(below)


@pytest.mark.real
@pytest.mark.skipif(os.geteuid() != 0, reason="loop devices need root")
def test_image_in_memory_is_memory(tmp_path: Path) -> None:
    shared = Path("/dev/shm") / f"knobscope-test-{os.getpid()}"
    shared.mkdir()
    emulation = Emulation(image_directory=str(shared), size="64MiB")
    device = Device(name="ram", description="in memory", tier="auto", emulate=emulation)
    try:
        with open_device(device, tmp_path, "study") as opened:
            assert opened.tier == "memory"
            assert find_bottom_disks(opened.block) == [opened.block]
    finally:
        take_down(device, tmp_path)
        shared.rmdir()


def test_mount_of_a_path_is_the_deepest_one() -> None:
    assert find_mount(Path("/proc/self")).point == Path("/proc")
    assert find_mount(Path("/")).point == Path("/")
    assert any(mount.filesystem == "proc" for mount in list_mounts())
