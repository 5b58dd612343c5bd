"""Emulated devices: a file system of its own in an image file behind a loop device.

Everything lies in ``<image_directory>/.knobscope-devices/<name>/``: ``disk.img``, the mount point ``mount`` and
``state.json``, which is written once the image holds a file system. What is attached and mounted is asked of the kernel
each time, so that a restart of the machine only means that the image is attached again.
"""

import fcntl
import json
import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from knobscope.devices.disks import is_loop_direct
from knobscope.devices.mounts import list_mounts
from knobscope.devices.privileged import make_filesystem, run_privileged
from knobscope.errors import UserError
from knobscope.specs.device import Device, Emulation
from knobscope.tables import write_json

__all__ = ["bring_up", "take_down"]

_FOLDER = ".knobscope-devices"
#: Lazy initialisation would write in the background, in the middle of measurements; ext4 would take blocks of 1 KiB on
#: images below 512 MiB, and no real device has those.
_MKFS_OPTIONS = {
    "ext4": ["-q", "-F", "-m", "0", "-b", "4096", "-E", "lazy_itable_init=0,lazy_journal_init=0"],
    "xfs": ["-q", "-f"],
}


@dataclass(frozen=True)
class _Place:
    """Where an emulated device keeps its things."""

    device: str
    emulation: Emulation
    images: Path

    @property
    def folder(self) -> Path:
        return self.images / _FOLDER / self.device

    @property
    def image(self) -> Path:
        return self.folder / "disk.img"

    @property
    def mount(self) -> Path:
        return self.folder / "mount"

    @property
    def state(self) -> Path:
        return self.folder / "state.json"

    @property
    def description(self) -> dict[str, object]:
        """What the image was made for; another description needs another image."""
        return {"device": self.device, "size_mib": self.emulation.size_mib, "filesystem": self.emulation.filesystem}


def bring_up(device: Device, root: Path) -> Path:
    """Make the emulated device ready, or find it ready, and return the directory that it is mounted on.

    Raises UserError without root, without space, or when it exists with another size or file system.
    """
    with _claim(device, root) as place:
        _require_same(place)
        if not place.state.exists():
            _make_image(place)
        loop = _find_loop(place.image) or _attach(place)
        if not _is_mounted(place.mount):
            run_privileged("mount", ["-o", "nosuid,nodev", f"/dev/{loop}", str(place.mount)])
            run_privileged("chown", [f"{os.geteuid()}:{os.getegid()}", str(place.mount)])
        return place.mount


def take_down(device: Device, root: Path) -> bool:
    """Unmount and detach the emulated device and remove all it left, data included; False when there was nothing.

    Raises UserError while somebody still uses it.
    """
    with _claim(device, root) as place:
        existed = place.folder.exists()
        if _is_mounted(place.mount):
            _unmount(place)
        while (loop := _find_loop(place.image)) is not None:
            run_privileged("losetup", ["--detach", f"/dev/{loop}"])
        if existed:
            shutil.rmtree(place.folder)
        return existed


def _unmount(place: _Place) -> None:
    try:
        run_privileged("umount", [str(place.mount)])
    except UserError as error:
        if "busy" not in str(error):
            raise
        raise UserError(
            f"device {place.device} is in use; `fuser -vm {place.mount}` shows by whom; end that, then try again"
        ) from error


@contextmanager
def _claim(device: Device, root: Path) -> Iterator[_Place]:
    """Yield the device's place, while no other process brings emulated devices of this directory up or down."""
    if device.emulate is None:
        raise UserError(f"device {device.name} is the directory {device.path}: only emulated ones go up and down")
    images = (root / device.emulate.image_directory).resolve()
    if not images.is_dir():
        raise UserError(f"device {device.name}: image_directory {images} is no directory; make it, or name another")
    descriptor = _lock_folder(images / _FOLDER)
    try:
        yield _Place(device.name, device.emulate, images)
    finally:
        if not any((images / _FOLDER).iterdir()):
            (images / _FOLDER).rmdir()
        os.close(descriptor)


def _lock_folder(folder: Path) -> int:
    """Return a descriptor that holds the folder, made if need be; who waited for one that was removed makes another."""
    while True:
        try:
            folder.mkdir(exist_ok=True)
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # removed between the two
        except OSError as error:
            raise UserError(f"cannot use {folder} ({error.strerror}); it must belong to this user") from error
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        if folder.is_dir() and os.path.samestat(os.fstat(descriptor), folder.lstat()):
            return descriptor
        os.close(descriptor)


def _require_same(place: _Place) -> None:
    if not place.state.exists():
        return
    existing = json.loads(place.state.read_text())
    if existing != place.description:
        raise UserError(
            f"device {place.device} exists with {existing['size_mib']} MiB of {existing['filesystem']}, and its spec "
            f"asks for {place.emulation.size_mib} MiB of {place.emulation.filesystem}; "
            f"`knobscope device down {place.device}` removes the existing one and its data"
        )


def _make_image(place: _Place) -> None:
    """Make the sparse image with its file system, as ourselves: only attaching it needs root."""
    size = place.emulation.size_mib << 20
    if (free := shutil.disk_usage(place.images).free) < size:
        raise UserError(
            f"device {place.device}: {place.images} has {free >> 20} MiB free, and the image may grow to "
            f"{place.emulation.size_mib} MiB; free some space, or make size_mib smaller"
        )
    for directory in (place.folder.parent, place.folder, place.mount):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o711)  # servers run as another user when we are root, and must get through
    with place.image.open("wb") as image:
        image.truncate(size)
    place.image.chmod(0o600)
    filesystem = place.emulation.filesystem
    make_filesystem(filesystem, [*_MKFS_OPTIONS[filesystem], str(place.image)])
    write_json(place.state, place.description)


def _attach(place: _Place) -> str:
    node = run_privileged("losetup", ["--find", "--show", "--direct-io=on", str(place.image)])
    loop = Path(node).name
    if not is_loop_direct(loop):
        print(
            f"device {place.device}: direct I/O is not granted on {place.image}; the page cache of "
            f"{place.images} stands between the emulated device and its storage",
            file=sys.stderr,
        )
    return loop


def _find_loop(image: Path) -> str | None:
    """Return the loop device of an image, if it is attached."""
    for backing in Path("/sys/block").glob("loop*/loop/backing_file"):
        if backing.read_text().removesuffix("\n") == str(image):
            return backing.parts[3]
    return None


def _is_mounted(point: Path) -> bool:
    return any(mount.point == point for mount in list_mounts())
