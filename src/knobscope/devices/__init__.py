"""Storage devices: what is behind a path, a private directory on it, emulation, and one user at a time."""

from knobscope.devices.block import BlockDevice, find_block_device
from knobscope.devices.emulation import bring_up, take_down
from knobscope.devices.health import Health, read_health
from knobscope.devices.lock import device_lock
from knobscope.devices.mount_options import changed_mounts
from knobscope.devices.power import PoweredDisk, keep_mounts_private, open_powered_disk
from knobscope.devices.precondition import precondition
from knobscope.devices.queue import SettingRefusedError, changed_queue
from knobscope.devices.scattering import make_scattering_directory
from knobscope.devices.scratch import OpenDevice, close_device, count_scratch_bytes, open_device, require_free
from knobscope.devices.spec import load_device

__all__ = [
    "BlockDevice",
    "Health",
    "OpenDevice",
    "PoweredDisk",
    "SettingRefusedError",
    "bring_up",
    "changed_mounts",
    "changed_queue",
    "close_device",
    "count_scratch_bytes",
    "device_lock",
    "find_block_device",
    "keep_mounts_private",
    "load_device",
    "make_scattering_directory",
    "open_device",
    "open_powered_disk",
    "precondition",
    "read_health",
    "require_free",
    "take_down",
]
