"""Modelled devices of tests: slow enough to be seen on a busy machine, whatever the way to them costs."""

from collections.abc import Callable
from pathlib import Path

from knobscope.devices.folder import DeviceFolder
from knobscope.specs import Device
from knobscope.specs.models.transport import Transport

#: No figures of this machine: what is asserted is far above what the way to the device costs.
NO_COST = Transport(0, 0, 0, 0, 0, 1e9, 1e9, 1e12, 1e12)
SLOW = {
    "kind": "flash",
    "channels": 4,
    "read": "20ms",
    "write": "5ms",
    "cache": "16MiB",
    "drain": "500MB/s",
    "unit": "32KiB",
    "fill": "20ms",
    "flush": "40ms",
}
MakeDevice = Callable[..., Device]


def folder_of(device: Device) -> DeviceFolder:
    assert device.emulate is not None
    return DeviceFolder(device.name, Path(device.emulate.image_directory))
