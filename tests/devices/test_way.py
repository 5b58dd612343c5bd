"""What the way to a modelled device costs is corrected while the device is in use, on a real one."""

from dataclasses import replace
from pathlib import Path

import pytest
from direct import make_file, time_reads
from modelled import NO_COST, MakeDevice

from knobscope.devices import bring_up
from knobscope.devices.block import find_block_device, read_counts
from knobscope.specs.transport import write_transport

pytestmark = pytest.mark.real


def test_a_wrong_cost_is_corrected_in_use(make_device: MakeDevice) -> None:
    """A way that is said to take 400 us makes a device of 1 ms that much too fast at first."""
    write_transport(replace(NO_COST, read_us=400.0))
    file = make_file(bring_up(make_device(read="1ms"), Path("/")))
    assert time_reads(file) < 0.0008
    time_reads(file, 4000)
    assert time_reads(file, 200) == pytest.approx(0.001, rel=0.15)


def test_the_kernel_counts_what_a_device_answered(make_device: MakeDevice) -> None:
    file = make_file(bring_up(make_device(), Path("/")))
    block = find_block_device(file)
    before = read_counts(block)
    seconds = time_reads(file, 100)
    after = read_counts(block)
    requests, milliseconds = (now - then for now, then in zip(after["read"], before["read"], strict=True))
    assert requests == 100
    assert milliseconds / requests == pytest.approx(1000 * seconds, rel=0.1)
