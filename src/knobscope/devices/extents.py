"""Where the bytes of a file lie on its device, as the file system tells (FIEMAP).

The call needs no rights beyond reading the file (https://docs.kernel.org/filesystems/fiemap.html). It answers for the
file system's own block device; requests carry addresses of the whole disk, so a partition's start is added.
"""

import fcntl
import os
import stat
import struct
import sys
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.devices.block import BlockDevice

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

#: File systems whose answer is an address on their block device: btrfs answers in addresses of its own.
MAPPED_FILESYSTEMS = ("ext2", "ext3", "ext4", "xfs")

_FS_IOC_FIEMAP = 0xC020660B
_FS_IOC_GETVERSION = 0x80087601
_HEADER = struct.Struct("=QQIIII")  # start, length, flags, mapped extents, room for extents, reserved
_EXTENT = struct.Struct("=QQQQQIIII")  # logical, physical, length, 2 reserved, flags, 3 reserved
_BATCH = 256
_LAST = 0x1
#: Location unknown, not allocated yet, encoded, not aligned (tail packing), inline in the inode: nothing that requests
#: of the file's data could go to. Extents that are allocated and not yet written do have an address.
_WITHOUT_ADDRESS = 0x2 | 0x4 | 0x8 | 0x100 | 0x200 | 0x400


@dataclass(frozen=True)
class FoundFile:
    """A file as its file system tells it. An inode number is used again; the generation tells the files apart."""

    inode: int
    generation: int | None  # None: the file system does not tell
    extents: list["Extent"]


@dataclass(frozen=True)
class Extent:
    """A run of bytes of a file that lie together on the device; all in bytes, `address` on the file system's device."""

    offset: int
    address: int
    length: int


def inspect_file(file: Path, *, with_extents: bool = True) -> FoundFile:
    """Return what a regular file is, and its extents in order of their offset; holes and inline data have none.

    What is in the page cache only has no address yet, and no request went there: nothing is written back for this.
    Raises OSError when the file is gone, not to be read, or on a file system that does not tell extents.
    """
    # Its owner may be somebody else, who could have replaced it by anything.
    descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            return FoundFile(status.st_ino, None, [])
        extents = list(_read_extents(descriptor)) if with_extents else []
        return FoundFile(status.st_ino, _read_generation(descriptor), extents)
    finally:
        os.close(descriptor)


def _read_generation(descriptor: int) -> int | None:
    buffer = bytearray(8)  # the call is declared for a long, and writes an int
    try:
        fcntl.ioctl(descriptor, _FS_IOC_GETVERSION, buffer)
    except OSError:
        return None
    return int.from_bytes(buffer[:4], sys.byteorder)


def _read_extents(descriptor: int) -> Iterator[Extent]:
    start, flags = 0, 0
    while not flags & _LAST:
        buffer = bytearray(_HEADER.size + _BATCH * _EXTENT.size)
        _HEADER.pack_into(buffer, 0, start, 2**64 - 1 - start, 0, 0, _BATCH, 0)
        fcntl.ioctl(descriptor, _FS_IOC_FIEMAP, buffer)
        mapped = _HEADER.unpack_from(buffer)[3]
        if not mapped:
            return
        for index in range(mapped):
            fields = _EXTENT.unpack_from(buffer, _HEADER.size + index * _EXTENT.size)
            (offset, address, length), flags = fields[:3], fields[5]
            if not flags & _WITHOUT_ADDRESS:
                yield Extent(offset, address, length)
        start = offset + length


def read_partition_start(block: BlockDevice) -> int:
    """Return where a partition begins on its disk, in bytes; 0 for anything that is no partition."""
    start = Path(f"/sys/dev/block/{block.major}:{block.minor}/start")
    return int(start.read_text()) * 512 if start.exists() else 0  # sysfs counts in 512 bytes, whatever the disk does


class AddressIndex:
    """Finds out which file an address belongs to."""

    def __init__(self, spans: Iterable[tuple[int, int, int]]) -> None:
        """Take spans (first byte, number of bytes, inode) that do not overlap."""
        self._spans = sorted(spans)
        self._starts = [start for start, _, _ in self._spans]

    def find(self, address: int) -> int | None:
        """Return the inode of the file that has a byte, None when no file has it."""
        index = bisect_right(self._starts, address) - 1
        if index < 0:
            return None
        start, length, inode = self._spans[index]
        return inode if address < start + length else None

    def find_all(self, addresses: "NDArray[np.int64]") -> "NDArray[np.int64]":
        """Return the same of many addresses; 0 where no file has it."""
        import numpy as np

        if not self._spans:
            return np.zeros(len(addresses), np.int64)
        starts, lengths, inodes = np.array(self._spans, np.int64).T
        indexes = np.maximum(np.searchsorted(starts, addresses, "right") - 1, 0)
        is_inside = (addresses >= starts[indexes]) & (addresses < starts[indexes] + lengths[indexes])
        return np.where(is_inside, inodes[indexes], 0)
