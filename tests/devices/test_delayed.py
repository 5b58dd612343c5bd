"""Delayed devices, real: FUSE, loop device, file system. Delays are long enough to be seen on a busy machine."""

import os
import subprocess
import threading
import time
from itertools import islice
from pathlib import Path

import pytest
from direct import find_shortest, make_file, time_flushes, time_reads, time_writes
from modelled import MakeDevice, folder_of

from knobscope.devices import bring_up, take_down

pytestmark = pytest.mark.real


def test_each_kind_of_request_takes_longer_by_its_delay(make_delayed: MakeDevice) -> None:
    file = make_file(bring_up(make_delayed(read="20ms", write="10ms", flush="30ms"), Path("/")))
    assert 0.020 <= find_shortest(time_reads(file), 0.026) < 0.026
    assert 0.010 <= find_shortest(time_writes(file), 0.016) < 0.016
    assert 0.010 < find_shortest(time_flushes(file), 0.036) < 0.036  # one may join that of another program's sync()


def test_without_a_delay_it_is_as_fast_as_what_is_below(make_delayed: MakeDevice) -> None:
    file = make_file(bring_up(make_delayed(), Path("/")))
    for kind in (time_reads, time_writes, time_flushes):
        assert find_shortest(kind(file), 0.005) < 0.005


def test_delays_of_requests_that_are_under_way_together_overlap(make_delayed: MakeDevice) -> None:
    """Eight readers take about as long as one of them alone, and eight times as long if they waited for each other."""
    file = make_file(bring_up(make_delayed(read="40ms"), Path("/")))
    attempts = ((time_readers(file, 8), time_readers(file, 1)) for _ in range(20))
    assert any(together < 4 * alone for together, alone in attempts)


def time_readers(file: Path, count: int) -> float:
    """Return how long so many threads take for ten reads each."""
    readers = [threading.Thread(target=lambda: list(islice(time_reads(file), 10))) for _ in range(count)]
    begin = time.perf_counter()
    for reader in readers:
        reader.start()
    for reader in readers:
        reader.join()
    return time.perf_counter() - begin


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
