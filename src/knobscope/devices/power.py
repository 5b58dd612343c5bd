"""A file system of its own that can lose its power: what was not made durable is gone when it is mounted again."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from knobscope.devices.block import find_block_device
from knobscope.devices.privileged import make_filesystem, run_as_root, set_queue

#: EXT4_IOC_SHUTDOWN with EXT4_GOING_FLAGS_NOLOGFLUSH: from now on nothing is written, not even the journal.
_SHUTDOWN, _NO_LOG_FLUSH = 0x8004587D, 2


@dataclass(frozen=True)
class _Layer:
    """An image with ext4, and where it is mounted."""

    image: Path
    directory: Path

    def make(self, size: int) -> None:
        """Make the file system, and mount it."""
        with self.image.open("xb") as image:
            os.fchmod(image.fileno(), 0o600)
            image.truncate(size)
        make_filesystem("ext4", self.image)
        self.directory.mkdir()
        self.mount()

    def mount(self) -> None:
        """Mount it; the kernel detaches the loop device when it is unmounted."""
        run_as_root("mount", ["-o", "loop,nosuid,nodev", str(self.image), str(self.directory)])
        set_queue(find_block_device(self.directory).name, rotational=None)

    def unmount(self) -> None:
        """Unmount it."""
        run_as_root("umount", [str(self.directory)])


@dataclass(frozen=True)
class PoweredDisk:
    """A file system on a drive with a volatile cache: an image on another file system, whose page cache is that cache.

    A flush of the upper one is an fsync of its image on the lower one.
    """

    drive: _Layer
    volume: _Layer

    @property
    def directory(self) -> Path:
        """Where the upper file system is mounted."""
        return self.volume.directory

    def cut(self) -> None:
        """Cut the power: what was not flushed from the page cache, or from the drive's cache, is lost.

        The drive goes first: the upper file system flushes it once more when its journal ends.
        """
        for layer in (self.drive, self.volume):
            shut_down(layer.directory)

    def restart(self) -> None:
        """Mount it again, which replays both journals; nobody may use it any more."""
        for layer in (self.volume, self.drive):
            layer.unmount()
        for layer in (self.drive, self.volume):
            layer.mount()


def shut_down(directory: Path) -> None:
    """Stop all writing to an ext4 at once, that of its journal included; it can only be unmounted then."""
    descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
    try:
        fcntl.ioctl(descriptor, _SHUTDOWN, _NO_LOG_FLUSH.to_bytes(4, "little"))
    finally:
        os.close(descriptor)


@contextmanager
def open_powered_disk(parent: Path, size: int) -> Iterator[PoweredDisk]:
    """Yield an empty file system of `size` bytes, in images below `parent`, a directory of the caller's alone."""
    drive = _Layer(parent / "drive.img", parent / "drive")
    disk = PoweredDisk(drive, _Layer(drive.directory / "volume.img", parent / "volume"))
    with ExitStack() as stack:
        stack.callback(drive.image.unlink, missing_ok=True)
        for layer, room in ((drive, size + size // 8), (disk.volume, size)):
            layer.make(room)
            stack.callback(layer.directory.rmdir)
            stack.callback(layer.unmount)
        disk.directory.chmod(0o711)
        yield disk
