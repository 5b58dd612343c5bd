"""A small ext4 in an image."""

import contextlib
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path


def make_ext4(image: Path) -> Path:
    """Make an image of 64 MiB with an empty ext4; returns its path."""
    image.touch()
    os.truncate(image, 64 << 20)
    subprocess.run(["mkfs.ext4", "-q", image], check=True)
    return image


@contextlib.contextmanager
def mounted(image: Path) -> Iterator[Path]:
    """Mount the image next to it, from a loop device of its own, and yield where.

    A server that other tests start at this moment may hold what was unmounted, in a mount namespace of its own.
    """
    mount = image.with_suffix(".mount")
    mount.mkdir(exist_ok=True)
    attached = subprocess.run(["losetup", "--find", "--show", image], check=True, capture_output=True, text=True)
    loop = attached.stdout.strip()
    try:
        subprocess.run(["mount", loop, mount], check=True)
    finally:
        subprocess.run(["losetup", "--detach", loop], check=True)  # when it is no longer in use
    try:
        yield mount
    finally:
        subprocess.run(["umount", mount], check=True)
