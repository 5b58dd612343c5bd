"""Delayed devices, real: FUSE, loop device, file system. Delays are long enough to be seen on a busy machine."""

import os
import subprocess
import threading
import time
from pathlib import Path

import pytest
from direct import make_file, time_flushed_writes, time_reads, time_writes
from modelled import MakeDevice, folder_of

from knobscope.devices import bring_up, take_down

pytestmark = pytest.mark.real


def test_each_kind_of_request_takes_longer_by_its_delay(make_delayed: MakeDevice) -> None:
    file = make_file(bring_up(make_delayed(read="20ms", write="10ms", flush="30ms"), Path("/")))
    assert time_reads(file) == pytest.approx(0.020, abs=0.006)
    assert time_writes(file) == pytest.approx(0.010, abs=0.006)
    assert time_flushed_writes(file) == pytest.approx(0.030, abs=0.006)


def test_without_a_delay_it_is_as_fast_as_what_is_below(make_delayed: MakeDevice) -> None:
    file = make_file(bring_up(make_delayed(), Path("/")))
    assert max(time_reads(file), time_writes(file), time_flushed_writes(file)) < 0.005


def test_delays_of_requests_that_are_under_way_together_overlap(make_delayed: MakeDevice) -> None:
    file = make_file(bring_up(make_delayed(read="40ms"), Path("/")))
    readers = [threading.Thread(target=time_reads, args=(file, 10)) for _ in range(8)]
    begin = time.perf_counter()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    assert time.perf_counter() - begin < 4 * 0.4  # one after the other it would be 8 times 10 reads of 40 ms


def test_what_was_written_is_there_and_in_the_image(make_delayed: MakeDevice, open_directory: Path) -> None:
    device = make_delayed(images=open_directory, write="1ms")
    folder = folder_of(device)
    directory = bring_up(device, Path("/"))
    extents = subprocess.run(["filefrag", "-v", folder.image], capture_output=True, text=True, check=True).stdout
    assert "unwritten" not in extents  # no block is written for the first time in a run
    assert folder.image.stat().st_blocks * 512 >= folder.image.stat().st_size
    content = os.urandom(1 << 20)
    with (directory / "data").open("wb") as handle:
        handle.write(content)
        handle.flush()
        os.fsync(handle.fileno())
    assert content[:4096] in folder.image.read_bytes()
    descriptor = os.open(directory / "data", os.O_RDONLY)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    assert os.pread(descriptor, 1 << 20, 0) == content
    os.close(descriptor)
    assert take_down(device, Path("/"))
    assert not folder.path.exists()
    assert folder.find_loop() is None
