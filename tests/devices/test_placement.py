"""Directories that ext4 spreads over the device."""

import subprocess
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
        listed = subprocess.run(["lsattr", "-d", directory], capture_output=True, text=True, check=True).stdout
        assert "T" in listed.split()[0]
