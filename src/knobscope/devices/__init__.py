"""Storage devices: what is behind a path, a private directory on it, emulation, and one user at a time."""

import importlib
from typing import TYPE_CHECKING, Any

from knobscope.devices.block import BlockDevice, find_block_device, identify_block

if TYPE_CHECKING:
    from knobscope.devices.emulation import bring_up, take_down
    from knobscope.devices.filesystem import read_filesystem
    from knobscope.devices.health import Health, read_health
    from knobscope.devices.lock import count_other_users, device_lock
    from knobscope.devices.mount_options import changed_mounts
    from knobscope.devices.power import PoweredDisk, open_powered_disk
    from knobscope.devices.preconditioning import precondition
    from knobscope.devices.queue import SettingLostError, SettingRefusedError, changed_queue
    from knobscope.devices.scattering import make_scattering_directory
    from knobscope.devices.scratch import (
        OpenDevice,
        close_device,
        count_scratch_bytes,
        open_device,
        open_locked,
        require_free,
    )
    from knobscope.devices.spec import load_device

#: Module -> what it has of these names. They are imported when they are first used: the models of specs take a quarter
#: of a second, and who watches needs none.
_HOMES = {
    "emulation": ("bring_up", "take_down"),
    "filesystem": ("read_filesystem",),
    "health": ("Health", "read_health"),
    "lock": ("count_other_users", "device_lock"),
    "mount_options": ("changed_mounts",),
    "power": ("PoweredDisk", "open_powered_disk"),
    "preconditioning": ("precondition",),
    "queue": ("SettingLostError", "SettingRefusedError", "changed_queue"),
    "scattering": ("make_scattering_directory",),
    "scratch": ("OpenDevice", "close_device", "count_scratch_bytes", "open_device", "open_locked", "require_free"),
    "spec": ("load_device",),
}


def __getattr__(name: str) -> Any:
    for module, names in _HOMES.items():
        if name in names:
            return getattr(importlib.import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
