"""Settings of a real mount: set, felt, put back."""

import json
import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import pytest
from emulated import find_direct_memory, require_loops

from knobscope.devices import (
    BlockDevice,
    SettingLostError,
    SettingRefusedError,
    bring_up,
    changed_mounts,
    mount_options,
    open_device,
    open_locked,
    take_down,
)
from knobscope.devices.block import find_block_device, read_counts
from knobscope.devices.mounts import find_mount
from knobscope.errors import UserError
from knobscope.specs import Device, Emulation

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


def test_a_setting_that_something_else_changes_is_named(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        point, words = (
            find_mount(opened.directory).point,
            "was strictatime when the run began and is noatime at its end",
        )
        with pytest.raises(SettingLostError, match=words), changed_mounts([opened.directory], {"atime": "strictatime"}):
            subprocess.run(["mount", "-o", "remount,noatime", point], check=True)
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


READ_AHEAD = "queue/read_ahead_kb"
#: Opens an emulated device as a stage does, and says so; with settings it keeps them until it is killed.
_STAGE = """
import json, sys, time
from pathlib import Path
from knobscope.devices import changed_mounts, changed_queue, open_locked
from knobscope.specs import Device
settings = json.loads(sys.argv[2])
with open_locked([Device.model_validate_json(sys.argv[1])], Path("/"), "other") as (opened,):
    with changed_queue([opened.block], {"scheduler": "mq-deadline", "read_ahead_kb": 4} if settings else {}):
        with changed_mounts([opened.directory], settings):
            print("open", flush=True)
            time.sleep(600 if settings else 0)
"""


def start_stage(device: Device, **settings: object) -> "subprocess.Popen[str]":
    command = [sys.executable, "-c", _STAGE, device.model_dump_json(exclude_unset=True), json.dumps(settings)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@pytest.fixture
def in_memory(open_directory: Path) -> Iterator[Device]:
    """An emulated device in main memory, whose lock nobody else waits for."""
    require_loops()
    with tempfile.TemporaryDirectory(dir=find_direct_memory(open_directory)) as images:
        emulation = Emulation(image_directory=images, size="64MiB")
        device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
        yield device
        take_down(device, Path("/"))


def test_who_waits_for_a_device_keeps_nothing_open_on_it(in_memory: Device, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mount_options, "_PATIENCE_S", 0.5)
    with ExitStack() as stack:
        with open_locked([in_memory], Path("/"), "study") as (opened,):
            other = stack.enter_context(start_stage(in_memory))
            assert other.stderr is not None and other.stdout is not None
            assert "waiting for disk" in other.stderr.readline()
            with changed_mounts([opened.directory], {"data": "journal"}) as effective:
                assert effective == {"data": "journal"}
        assert other.stdout.readline() == "open\n"
        assert other.wait() == 0


def test_a_device_is_not_brought_up_while_it_is_mounted_anew(in_memory: Device) -> None:
    with open_locked([in_memory], Path("/"), "study") as (opened,):
        done = threading.Event()

        def bring_up_again_and_again() -> None:
            while not done.is_set():
                bring_up(in_memory, Path("/"))

        with ThreadPoolExecutor(1) as pool:
            others = pool.submit(bring_up_again_and_again)
            try:
                for data in ("journal", "writeback") * 3:
                    with changed_mounts([opened.directory], {"data": data}) as effective:
                        assert effective == {"data": data}
            finally:
                done.set()
            others.result()


def test_what_a_killed_run_has_set_is_undone(in_memory: Device, capsys: pytest.CaptureFixture[str]) -> None:
    mount = bring_up(in_memory, Path("/"))
    before, read_ahead = find_mount(mount).options, Path("/sys/block", find_block_device(mount).name, READ_AHEAD)
    usual = read_ahead.read_text()
    with start_stage(in_memory, barrier=False, commit_s=60, data="journal", atime="noatime") as other:
        assert other.stdout is not None
        assert other.stdout.readline() == "open\n"
        other.kill()
    assert read_ahead.read_text() == "4\n"
    assert bring_up(in_memory, Path("/")) == mount
    assert {"nobarrier", "commit=60", "data=journal", "noatime"} <= find_mount(mount).options
    with open_device(in_memory, Path("/"), "study") as opened:
        assert find_mount(mount).options - {"commit=5", "data=ordered"} == before - {"commit=5", "data=ordered"}
        assert "[none]" in Path("/sys/block", opened.block.name, "queue/scheduler").read_text()
        assert read_ahead.read_text() == usual
    told = capsys.readouterr().err
    assert f"a killed run left settings of {opened.block.name}" in told
    assert f"read_ahead_kb = {usual.strip()}" in told
    assert f"a killed run left settings of {mount}" in told
    with open_device(in_memory, Path("/"), "study"):
        assert "left" not in capsys.readouterr().err
