"""A file system of its own whose power can be cut: what was not written to the device is gone."""

import contextlib
import fcntl
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["cut_power", "make_ext4", "mounted"]

_SHUTDOWN = 0x8004587D  # EXT4_IOC_SHUTDOWN
_NO_LOG_FLUSH = 2


def make_ext4(image: Path) -> Path:
    """Make an image of 64 MiB with an empty ext4; returns its path."""
    image.touch()
    os.truncate(image, 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    return image


@contextlib.contextmanager
def mounted(image: Path) -> Iterator[Path]:
    """Mount the image beside it, and yield where."""
    mount = image.with_suffix(".mount")
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)


def cut_power(root: Path) -> None:
    """Stop all writing to the file system at once, that of its journal included; it can only be unmounted then."""
    descriptor = os.open(root, os.O_RDONLY)
    fcntl.ioctl(descriptor, _SHUTDOWN, _NO_LOG_FLUSH.to_bytes(4, "little"))
    os.close(descriptor)
