"""Directories that ext4 spreads over the device."""

import array
import fcntl
import os
from pathlib import Path

from knobscope.devices import find_block_device, make_scattering_directory
from knobscope.devices.mounts import find_mount


def test_a_scattering_directory_is_marked_once_and_usable(tmp_path: Path) -> None:
    directory = tmp_path / "a" / "runs"
    for _ in range(2):
        make_scattering_directory(directory)
    (directory / "one").mkdir()
    assert find_block_device(directory).name
    if find_mount(directory).filesystem == "ext4":
        flags, descriptor = array.array("l", [0]), os.open(directory, os.O_RDONLY)
        fcntl.ioctl(descriptor, 0x80086601, flags)  # FS_IOC_GETFLAGS
        os.close(descriptor)
        assert flags[0] & 0x00020000  # FS_TOPDIR_FL
