"""What the way to a modelled device costs is corrected while the device is in use, on a real one."""

import subprocess
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from itertools import islice
from pathlib import Path

import pytest
from direct import find_shortest, make_file, time_reads
from modelled import NO_COST, MakeDevice

from knobscope.devices import bring_up
from knobscope.devices.block import find_block_device, read_counts
from knobscope.specs.models.transport import write_transport

pytestmark = pytest.mark.real


def test_a_wrong_cost_is_corrected_in_use(make_device: MakeDevice) -> None:
    """A way that is said to take 60 ms, far more than it does on a busy machine, makes a device of 80 ms too fast."""
    write_transport(replace(NO_COST, read_us=60000.0))
    mount = bring_up(make_device(read="80ms", channels=32), Path("/"))
    file = make_file(mount)
    # Nothing is learnt of reads while something flushes, and any program's sync() would do so here.
    subprocess.run(["mount", "-o", "remount,nobarrier", mount], check=True)
    assert find_shortest(time_reads(file), 0.030) < 0.030
    with ThreadPoolExecutor(8) as readers:  # a comparison takes 512 requests
        assert any(min(readers.map(read_shortest, [file] * 8)) > 0.040 for _ in range(20))


def read_shortest(file: Path) -> float:
    """Return the shortest latency of some reads."""
    with closing(time_reads(file)) as latencies:
        return min(islice(latencies, 64))


def test_the_kernel_counts_what_a_device_answered(make_device: MakeDevice) -> None:
    """What it counts is what the program waited for, less the way from the program to the kernel and back."""
    file = make_file(bring_up(make_device(), Path("/")))
    block = find_block_device(file)
    before = read_counts(block)
    seconds = sum(islice(time_reads(file), 100))
    after = read_counts(block)
    requests, milliseconds = (now - then for now, then in zip(after["read"], before["read"], strict=True))
    assert requests == 100
    assert 100 * 20 - 1 <= milliseconds <= 1000 * seconds + 1  # it counts whole milliseconds
