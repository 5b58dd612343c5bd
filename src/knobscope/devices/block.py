"""The block device behind a path."""

import hashlib
import os
import stat
from dataclasses import dataclass
from pathlib import Path

from knobscope.errors import UserError

#: Below a disk's directory in /sys: what only one device has, wherever it is plugged in.
_IDENTITIES = ("wwid", "device/wwid", "serial", "device/serial", "device/cid", "dm/uuid", "md/uuid")


@dataclass(frozen=True)
class BlockDevice:
    """A block device as the kernel knows it: its name in sysfs and its numbers."""

    name: str
    major: int
    minor: int


def find_block_device(path: Path) -> BlockDevice:
    """Return the block device that a directory or file lies on, or that a device node is.

    File systems with anonymous device numbers (btrfs, overlay) are followed to the device that they were mounted from.
    Raises UserError where there is none, as on tmpfs or a network file system.
    """
    from knobscope.devices.mounts import find_mount

    status = path.stat()
    number = status.st_rdev if stat.S_ISBLK(status.st_mode) else status.st_dev
    if os.major(number) == 0:
        mount = find_mount(path)
        source = Path(mount.source)
        if not source.is_block_device():
            raise UserError(
                f"{path} lies on {mount.filesystem} ({mount.source}), which has no block device to watch; "
                "expected a directory on a disk, or an emulated device"
            )
        number = source.stat().st_rdev
    major, minor = os.major(number), os.minor(number)
    return BlockDevice(Path(f"/sys/dev/block/{major}:{minor}").resolve(strict=True).name, major, minor)


def identify_block(block: BlockDevice) -> str | None:
    """Return what tells a device from others that get its name later, as a hash; a partition has that of its disk.

    A device without a serial number (a loop device, some virtual disks) is known until it is detached, or the machine
    restarts. None: not even the kernel can tell, before 5.15.
    """
    place = Path(f"/sys/dev/block/{block.major}:{block.minor}").resolve(strict=True)
    disk = place.parent if (place / "partition").exists() else place
    identity = next(filter(None, (_read_word(disk / name) for name in _IDENTITIES)), "")
    if not identity and (number := _read_word(disk / "diskseq")):
        identity = Path("/proc/sys/kernel/random/boot_id").read_text() + number
    size = (disk / "size").read_text()  # QEMU and cheap drives may have one serial number for all
    return hashlib.sha256((identity + size).encode()).hexdigest()[:16] if identity else None


def _read_word(file: Path) -> str:
    """Return what a file of /sys holds; nothing where it is missing, or the device does not answer."""
    try:
        return file.read_text(errors="replace").strip()
    except OSError:
        return ""


def read_counts(block: BlockDevice) -> dict[str, tuple[int, int]]:
    """Return how many reads, writes and flushes a block device has answered since boot, and how many ms these took.

    The kernel's own sums (Documentation/block/stat.rst); a flush counts as a write, too.
    """
    numbers = [int(number) for number in Path("/sys/block", block.name, "stat").read_text().split()]
    return {"read": (numbers[0], numbers[3]), "write": (numbers[4], numbers[7]), "flush": (numbers[15], numbers[16])}
