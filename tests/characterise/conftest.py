"""A small emulated device, open."""

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from knobscope.devices import OpenDevice, open_device, take_down
from knobscope.specs import Device, Emulation


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OpenDevice]:
    if os.geteuid() != 0 or not Path("/dev/loop-control").exists():
        pytest.skip("loop devices need root and /dev/loop-control")
    images = tmp_path_factory.mktemp("images")
    emulation = Emulation(image_directory=str(images), size_mib=192)
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    with open_device(device, images, "study") as opened:
        yield opened
    take_down(device, images)
