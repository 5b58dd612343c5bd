"""Settings of the kernel's queue of a real loop device: set, felt, put back."""

import os
from pathlib import Path

import pytest

from knobscope.devices import BlockDevice, SettingRefusedError, changed_queue, open_device
from knobscope.devices.block import read_counts
from knobscope.specs import Device

pytestmark = pytest.mark.real

SIZE = 8 << 20


def queue(block: BlockDevice, setting: str) -> str:
    return Path("/sys/block", block.name, "queue", setting).read_text().strip()


def count_reads(block: BlockDevice, file: Path) -> int:
    """Return how many requests it takes to read a file in order, past what is cached."""
    descriptor = os.open(file, os.O_RDONLY)
    try:
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        before = read_counts(block)["read"][0]
        while os.read(descriptor, 4096):
            pass
        return read_counts(block)["read"][0] - before
    finally:
        os.close(descriptor)


def test_read_ahead_decides_on_the_size_of_requests(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        file = opened.directory / "data"
        file.write_bytes(os.urandom(SIZE))
        os.sync()
        counts = {}
        for kib in (0, 128, 1024):
            with changed_queue([opened.block], {"read_ahead_kb": kib}) as found:
                assert found == {"read_ahead_kb": str(kib)}
                counts[kib] = count_reads(opened.block, file)
        file.unlink()
    assert counts[0] >= SIZE / 4096
    assert SIZE / (256 << 10) <= counts[128] <= SIZE / (32 << 10)
    assert counts[1024] < counts[128]


def test_a_queue_is_put_back_also_after_a_failure(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        before = queue(opened.block, "read_ahead_kb"), queue(opened.block, "scheduler")
        if "mq-deadline" not in before[1]:
            pytest.skip("this kernel has no schedulers for loop devices")
        wanted = {"scheduler": "mq-deadline", "read_ahead_kb": 4}
        with pytest.raises(ZeroDivisionError), changed_queue([opened.block], wanted) as found:
            assert found == {"scheduler": "mq-deadline", "read_ahead_kb": "4"}
            assert "[mq-deadline]" in queue(opened.block, "scheduler")
            _ = 1 / 0
        assert (queue(opened.block, "read_ahead_kb"), queue(opened.block, "scheduler")) == before


def test_what_the_kernel_refuses_is_named_and_nothing_stays_changed(tmp_path: Path, emulated: Device) -> None:
    with open_device(emulated, tmp_path, "study") as opened:
        before = queue(opened.block, "read_ahead_kb")
        wanted = {"read_ahead_kb": 4, "scheduler": "elevator"}
        with pytest.raises(SettingRefusedError, match="refuses scheduler = elevator") as raised:
            changed_queue([opened.block], wanted).__enter__()
        assert "none" in str(raised.value)
        assert queue(opened.block, "read_ahead_kb") == before
