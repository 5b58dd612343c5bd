"""Small emulated devices, real: image file, loop device, file system of their own, with a model and without."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from emulated import find_direct_memory, require_loops, require_models
from modelled import NO_COST, SLOW, MakeDevice

from knobscope.devices import take_down
from knobscope.specs import Device, Emulation
from knobscope.specs.models.transport import write_transport


@pytest.fixture
def emulated(tmp_path: Path) -> Iterator[Device]:
    require_loops()
    emulation = Emulation(image_directory=str(tmp_path), size="64MiB")
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    yield device
    take_down(device, tmp_path)


@pytest.fixture
def make_device(open_directory: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[MakeDevice]:
    require_models()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    write_transport(NO_COST)
    made: list[Device] = []

    def make(name: str = "modelled", images: Path = open_directory, size: str = "128MiB", **change: Any) -> Device:
        made.append(_make_spec(name, images, size, {**SLOW, **change}))
        return made[-1]

    yield make
    for device in made:
        take_down(device, Path("/"))


@pytest.fixture
def make_delayed(open_directory: Path) -> Iterator[MakeDevice]:
    require_models()
    made: list[Device] = []

    directory = find_direct_memory(open_directory)

    def make(name: str = "test-delayed", images: Path = directory, size: str = "64MiB", **delays: Any) -> Device:
        made.append(_make_spec(f"{name}-{os.getpid()}", images, size, {"kind": "delay", **delays}))
        return made[-1]

    yield make
    for device in made:
        take_down(device, Path("/"))


def _make_spec(name: str, images: Path, size: str, model: dict[str, Any]) -> Device:
    emulate = {"image_directory": str(images), "size": size, "model": model}
    return Device.model_validate({"name": name, "description": "x", "tier": "auto", "emulate": emulate})
