"""A private directory on a device, with what the kernel knows of the device."""

import errno
import fcntl
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from knobscope.devices.block import BlockDevice, find_block_device
from knobscope.devices.calibration import ensure_calibrated
from knobscope.devices.disks import find_tier
from knobscope.devices.emulation import bring_up, find_loop, find_warden, take_down, undo_settings
from knobscope.devices.lock import device_lock
from knobscope.devices.mounts import find_mount
from knobscope.devices.own_directory import hold_directory, make_directory
from knobscope.errors import UserError
from knobscope.specs.models.device import Device, Tier
from knobscope.text.formats import format_size, loosen_units

_FOLDER = ".knobscope"
#: What a file system answers to writes after an error of its device: it has shut down, or turned read-only.
_FAILED = (errno.EIO, errno.EROFS, errno.EUCLEAN)


@dataclass(frozen=True)
class OpenDevice:
    """A device that is ready for use."""

    name: str
    directory: Path  # private, on the device
    block: BlockDevice
    tier: Tier
    filesystem: str
    dedicated: bool  # nothing but the DBMS uses the file system
    program: int | None = None  # process that answers as a modelled device, itself or through a child

    @property
    def free_bytes(self) -> int:
        """Bytes that we may still write."""
        return shutil.disk_usage(self.directory).free

    def require_free(self, needed: int, purpose: str) -> None:
        """Raise UserError unless so many bytes are free."""
        require_free(self.directory, needed, f"device {self.name}: {purpose}")


def require_free(directory: Path, needed: int, purpose: str) -> None:
    """Raise UserError unless so many bytes are free where a directory lies."""
    free = shutil.disk_usage(directory).free
    if free < needed:
        raise UserError(
            loosen_units(f"{purpose} needs {format_size(needed)} on {directory}, where {format_size(free)} are free; ")
            + "free some space, or use a larger device"
        )


@contextmanager
def open_locked(devices: Sequence[Device], root: Path, study: str) -> Iterator[list[OpenDevice]]:
    """Yield devices as open_device does; they belong to this process alone until the end.

    They are locked before anything on them is opened: whoever has the lock may be mounting their file systems anew.
    """
    with ExitStack() as stack:
        stack.enter_context(device_lock(*(_find_block(device, root) for device in devices)))
        yield [stack.enter_context(open_device(device, root, study)) for device in devices]


def _find_block(device: Device, root: Path) -> BlockDevice:
    if device.emulate is None:
        return find_block_device(_require_directory(device, root))
    if device.model is not None:
        ensure_calibrated()
    return find_loop(device, root)


@contextmanager
def open_device(device: Device, root: Path, study: str) -> Iterator[OpenDevice]:
    """Yield the device with the scratch directory ``<path>/.knobscope/<study>`` on it; an emulated one is brought up.

    The caller holds the lock of the disk. What stages put into the directory stays for later stages; an empty one is
    removed at the end. Relative paths of the spec start from `root`. An emulated device whose file system has failed is
    made anew, and one on which a killed run left settings gets its own back. Raises UserError when the directory cannot
    be used.
    """
    if device.model is not None:
        ensure_calibrated()
    path = _bring_up_sound(device, root) if device.emulate is not None else _require_directory(device, root)
    # While anybody has it open, nobody removes the empty directories.
    descriptor = hold_directory(device.name, path / _FOLDER, exclusive=False)
    try:
        directory = path / _FOLDER / study
        make_directory(device.name, directory)
        block = find_block_device(directory)
        tier = find_tier(block) if device.tier == "auto" else device.tier
        filesystem = find_mount(directory).filesystem
        try:
            yield OpenDevice(
                device.name, directory, block, tier, filesystem, device.is_dedicated, find_warden(device, root)
            )
        finally:
            _remove_if_empty(descriptor, directory)
    finally:
        os.close(descriptor)


def count_scratch_bytes(opened: OpenDevice) -> int:
    """Return how many bytes the files in the scratch directory take on the device."""
    files = (Path(folder, name) for folder, _, names in os.walk(opened.directory) for name in names)
    return sum(file.lstat().st_blocks * 512 for file in files)


def close_device(device: Device, root: Path) -> bool:
    """Take an emulated device down, with all data on it; False when it was not there. Other devices are never down."""
    return device.emulate is not None and take_down(device, root)


def _bring_up_sound(device: Device, root: Path) -> Path:
    """Return where an emulated device is mounted, with a file system that takes writes.

    One that failed, since the disk of its image was full, say, takes none until it was unmounted and repaired. It holds
    only data that is loaded again.
    """
    path = bring_up(device, root)
    if (problem := _find_failure(path)) is None:
        undo_settings(device, root)
        return path
    print(f"device {device.name}: its file system has failed ({problem}), so it is made anew", file=sys.stderr)
    take_down(device, root)
    return bring_up(device, root)


def _find_failure(path: Path) -> str | None:
    """Say why a file system takes no writes any more; None where it does, or is only full."""
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"x")
            file.flush()
            os.fsync(file.fileno())
    except OSError as error:
        if error.errno in _FAILED:
            return error.strerror
    return None


def _require_directory(device: Device, root: Path) -> Path:
    path = (root / str(device.path)).resolve()
    if not path.is_dir():
        raise UserError(
            f"device {device.name}: {path} is no directory; make it, or correct `path` in the device's spec"
        )
    return path


def _remove_if_empty(descriptor: int, directory: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return  # another process has the device open
    for empty in (directory, directory.parent):
        if any(empty.iterdir()):
            return
        empty.rmdir()
