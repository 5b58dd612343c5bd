"""The block device behind a path."""

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from knobscope.errors import UserError


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


def read_counts(block: BlockDevice) -> dict[str, tuple[int, int]]:
    """Return how many reads, writes and flushes a block device has answered since boot, and how many ms these took.

    The kernel's own sums (Documentation/block/stat.rst); a flush counts as a write, too.
    """
    numbers = [int(number) for number in Path("/sys/block", block.name, "stat").read_text().split()]
    return {"read": (numbers[0], numbers[3]), "write": (numbers[4], numbers[7]), "flush": (numbers[15], numbers[16])}
