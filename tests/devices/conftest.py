"""A small emulated device, real: image file, loop device, file system of its own."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.devices import take_down
from knobscope.specs import Device, Emulation


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Device]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")
    emulation = Emulation(image_directory=str(tmp_path), size_mib=64)
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    yield device
    take_down(device, tmp_path)
