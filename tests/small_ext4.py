"""A small ext4 in an image."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

__all__ = ["make_ext4", "mounted"]


def make_ext4(image: Path) -> Path:
    """Make an image of 64 MiB with an empty ext4; returns its path."""
    image.touch()
    os.truncate(image, 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    return image


@contextlib.contextmanager
def mounted(image: Path) -> Iterator[Path]:
    """Mount the image next to it, and yield where."""
    mount = image.with_suffix(".mount")
    mount.mkdir(exist_ok=True)
    subprocess.run(["mount", "-o", "loop", image, mount], check=True)
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
