"""Settings of a real mount: set, felt, put back."""

import os
import subprocess
from pathlib import Path

import pytest

from knobscope.devices import BlockDevice, SettingRefusedError, changed_mounts, mount_options, open_device
from knobscope.devices.block import read_counts
from knobscope.devices.mounts import find_mount
from knobscope.errors import UserError
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


def count_written(block: BlockDevice, file: Path) -> int:
    """Return the bytes that one synced write of 8 MiB is for the device."""
    os.sync()
    before = read_written(block)
    descriptor = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    try:
        os.write(descriptor, bytes(8 << 20))
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    os.sync()
    file.unlink()
    return read_written(block) - before


def read_written(block: BlockDevice) -> int:
    return 512 * int(Path("/sys/block", block.name, "stat").read_text().split()[6])


def test_data_goes_through_the_journal_only_while_it_is_asked_for(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        file, before = opened.directory / "data", find_mount(opened.directory)
        once = count_written(opened.block, file)
        with changed_mounts([opened.directory], {"data": "journal", "atime": "noatime"}) as effective:
            assert effective == {"data": "journal", "atime": "noatime"}
            assert {"data=journal", "noatime", "nosuid", "nodev"} <= find_mount(opened.directory).options
            assert count_written(opened.block, file) > once + (7 << 20)
        after = find_mount(opened.directory)
        assert after.options - {"data=ordered"} == before.options - {"data=ordered"}
        assert (after.source, after.point) == (before.source, before.point)
        assert count_written(opened.block, file) < once + (1 << 20)


def test_a_file_system_in_use_stays_as_it_was_and_that_is_no_fault_of_the_setting(
    tmp_path: Path, emulated: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount_options, "_PATIENCE_S", 0.2)
    with open_device(emulated, tmp_path, "study") as opened, (opened.directory / "open").open("w"):
        with pytest.raises(UserError, match=r"busy.*shows who uses it"):
            changed_mounts([opened.directory], {"data": "journal"}).__enter__()
        assert "data=journal" not in find_mount(opened.directory).options
        assert (opened.directory / "open").exists()


def test_a_copy_of_the_mount_in_another_namespace_is_waited_for(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo there; sleep 1"]
        with subprocess.Popen(private, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"there\n"
            with changed_mounts([opened.directory], {"data": "journal"}) as effective:
                assert process.poll() == 0
                assert effective == {"data": "journal"}


def test_a_copy_of_the_mount_that_stays_is_named(
    tmp_path: Path, emulated: Device, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mount_options, "_PATIENCE_S", 0.2)
    with open_device(emulated, tmp_path, "study") as opened:
        private = ["unshare", "--mount", "--propagation", "private", "sh", "-c", "echo there; exec sleep 600"]
        with subprocess.Popen(private, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            process.stdout.readline()
            try:
                with pytest.raises(UserError, match="still mounted in another mount namespace"):
                    changed_mounts([opened.directory], {"data": "journal"}).__enter__()
            finally:
                process.kill()
        assert find_mount(opened.directory).point.name == "mount"
