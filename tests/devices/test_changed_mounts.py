"""Settings of a real mount: set, felt, put back."""

import os
from pathlib import Path

import pytest

from knobscope.devices import BlockDevice, SettingRefusedError, changed_mounts, open_device
from knobscope.devices.block import read_counts
from knobscope.devices.mounts import find_mount
from knobscope.specs import Device

pytestmark = pytest.mark.real


def count_flushes(block: BlockDevice, file: Path) -> int:
    """Return how many flushes ten synced writes are for the device."""
    before = read_counts(block)["flush"][0]
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT, 0o600)
    try:
        for _ in range(10):
            os.write(descriptor, b"x" * 4096)
            os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return read_counts(block)["flush"][0] - before


def test_without_barriers_no_flush_reaches_the_device(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        file, before = opened.directory / "data", find_mount(opened.directory).options
        with changed_mounts([opened.directory], {"barrier": True}) as found:
            assert found == {"barrier": True}
            assert count_flushes(opened.block, file) >= 10
        with changed_mounts([opened.directory], {"barrier": False, "commit_s": 60, "atime": "noatime"}) as found:
            assert found == {"barrier": False, "commit_s": 60, "atime": "noatime"}
            assert {"nobarrier", "commit=60", "noatime"} <= find_mount(opened.directory).options
            assert count_flushes(opened.block, file) == 0
        assert count_flushes(opened.block, file) >= 10
        assert find_mount(opened.directory).options - {"commit=5"} == before - {"commit=5"}
        file.unlink()


def test_a_mount_is_put_back_after_a_failure(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        with pytest.raises(ZeroDivisionError), changed_mounts([opened.directory], {"atime": "strictatime"}):
            assert not {"noatime", "relatime"} & find_mount(opened.directory).options
            _ = 1 / 0
        assert "relatime" in find_mount(opened.directory).options


def test_what_a_file_system_refuses_is_named(tmp_path: Path, emulated: Device) -> None:
    with (
        open_device(emulated, tmp_path, "study") as opened,
        pytest.raises(SettingRefusedError, match="not mounted with commit=never"),
    ):
        changed_mounts([opened.directory], {"commit_s": "never"}).__enter__()
