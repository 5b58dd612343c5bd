"""Stacks of storage: which devices lie below another one (device mapper, md, bcache, the file of a loop device)."""

import os
from collections.abc import Iterator
from pathlib import Path

from knobscope.devices.block import BlockDevice, find_block_device
from knobscope.errors import UserError

#: Beginning of a device-mapper UUID -> what made the device.
_MAPPED = {"LVM-": "LVM", "CRYPT-": "dm-crypt", "mpath-": "multipath"}


def list_levels(block: BlockDevice) -> list[list[BlockDevice]]:
    """Return the device, then the devices that it lies on, and so on; each device once."""
    levels, listed = [[block]], {block}
    while below := dict.fromkeys(lower for upper in levels[-1] for lower in _list_below(upper) if lower not in listed):
        levels.append(list(below))
        listed |= set(below)
    return levels


def is_stacked(major: int, minor: int) -> bool:
    """Whether addresses on a device are not those on the disks below."""
    return any(_list_slaves(_find_directory(major, minor)))


def lies_on(major: int, minor: int, disk: BlockDevice) -> bool:
    """Whether a device is another one, a partition of it, or stacked on either."""
    directory, target = _find_directory(major, minor), _find_directory(disk.major, disk.minor)
    return directory.is_relative_to(target) or any(
        lies_on(*_read_number(slave), disk) for slave in _list_slaves(directory)
    )


def describe_level(block: BlockDevice) -> str:
    """Return the name of a device and what it is: `dm-0 (LVM vg-data)`, `md0 (raid1)`; of others the name alone."""
    directory = _find_directory(block.major, block.minor)
    if (directory / "dm/uuid").exists():
        uuid, name = (_read(directory / f"dm/{fact}") for fact in ("uuid", "name"))
        kind = next((kind for begin, kind in _MAPPED.items() if uuid.startswith(begin)), "device mapper")
        return f"{block.name} ({kind} {name})"
    if (directory / "md/level").exists():
        return f"{block.name} ({_read(directory / 'md/level')})"
    if (directory / "loop/backing_file").exists():
        return f"{block.name} ({_read(directory / 'loop/backing_file')})"
    return block.name


def _list_below(block: BlockDevice) -> Iterator[BlockDevice]:
    directory = _find_directory(block.major, block.minor)
    for slave in _list_slaves(directory):
        yield BlockDevice(slave.name, *_read_number(slave))
    if (directory / "loop/backing_file").exists():
        try:
            yield find_block_device(Path(_read(directory / "loop/backing_file")))
        except (OSError, UserError):
            return  # deleted, in another mount namespace, or in memory


def _list_slaves(directory: Path) -> list[Path]:
    """Return what a device, or the disk of a partition, is stacked on."""
    disk = directory.parent if (directory / "partition").exists() else directory
    return [Path(os.path.realpath(slave)) for slave in sorted((disk / "slaves").glob("*"))]


def _find_directory(major: int, minor: int) -> Path:
    return Path(os.path.realpath(f"/sys/dev/block/{major}:{minor}"))


def _read_number(directory: Path) -> tuple[int, int]:
    major, minor = _read(directory / "dev").split(":")
    return int(major), int(minor)


def _read(file: Path) -> str:
    return file.read_text(errors="replace").strip()
