"""Emulated devices: a file system of its own in an image file behind a loop device.

With a model, a file that answers as the modelled device would, or with a delay, stands between the two. An image
without a model stays until it is taken down; another one goes, with its data, when nobody is left whom it was brought
up for.
"""

import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path

from knobscope.devices.block import BlockDevice, find_block_device
from knobscope.devices.disks import find_tier, is_loop_direct
from knobscope.devices.folder import DeviceFolder, awaiting_end, claim_folder
from knobscope.devices.mount_options import restore_mount
from knobscope.devices.owners import add_owner, find_owner
from knobscope.devices.privileged import call_helper, make_filesystem, run_as_root, set_queue
from knobscope.devices.queue import restore_queue
from knobscope.devices.warden import start_warden
from knobscope.durable_files import read_sealed, write_sealed
from knobscope.errors import UserError
from knobscope.specs.models.device import Device, Emulation
from knobscope.specs.models.device_model import Delay

#: What an image is made with; all of it is lost when another one is made.
_SHAPE = ("size", "filesystem", "block_bytes", "journal")
_LOSETUP_OPTIONS = ["--find", "--show", "--direct-io=on"]


def bring_up(device: Device, root: Path, owner: int | None = None) -> Path:
    """Make the emulated device ready, or find it ready, and return the directory that it is mounted on.

    A modelled device lives for the process `owner`; when none is named, for the pipeline, or for this process without
    one. Raises UserError without root, without space, or when it exists with another size, file system or model.
    """
    emulation, folder = _require_emulation(device), _folder_of(device, root)
    with claim_folder(folder):
        _require_same(folder, device, emulation)
        if not folder.state.exists():
            _make_image(folder, device, emulation)
        if emulation.model is not None:
            add_owner(folder.owners, find_owner() if owner is None else owner)
            if not folder.is_answering:
                folder.detach(force=True)  # what a killed program left behind
                start_warden(folder, emulation.model)
        if not folder.is_mounted:
            _mount(folder, emulation)
        return folder.mount


def find_loop(device: Device, root: Path) -> BlockDevice:
    """Bring an emulated device up and return its block device; its mount is not looked at, which may come and go."""
    bring_up(device, root)
    return find_block_device(Path("/dev", str(_folder_of(device, root).find_loop())))


def find_warden(device: Device, root: Path) -> int | None:
    """Return the process that runs the program of a modelled device that is up; None for other devices."""
    is_modelled = device.emulate is not None and device.emulate.model is not None
    return int(_folder_of(device, root).warden.read_text()) if is_modelled else None


def undo_settings(device: Device, root: Path) -> None:
    """Undo what a killed run has set of the kernel for an emulated device; its disk must be locked."""
    folder = _folder_of(device, root)
    restore_queue(find_block_device(Path("/dev", str(folder.find_loop()))))
    set_queue(str(folder.find_loop()), rotational=_is_rotational(folder, _require_emulation(device)))
    restore_mount(folder.mount)


def exists(device: Device, root: Path) -> bool:
    """Whether the emulated device has been made, and was not taken down since."""
    return _folder_of(device, root).state.exists()


def take_down(device: Device, root: Path) -> bool:
    """Unmount and detach the emulated device and remove all it left, data included; False when there was nothing.

    So are those with another file system that a study has varied. Raises UserError while somebody still uses one.
    """
    folder = _folder_of(device, root)
    others = [path.name for path in folder.path.parent.glob(f"{device.name}.*")]
    existed = [_remove(each) for each in (folder, *(DeviceFolder(name, folder.images) for name in others))]
    return any(existed)


def _remove(folder: DeviceFolder) -> bool:
    # The warden looks once more when its program ends, and makes the lock for that: it has to be gone, too.
    with awaiting_end(folder.warden), claim_folder(folder):
        return folder.remove()


def _require_emulation(device: Device) -> Emulation:
    if device.emulate is None:
        raise UserError(f"device {device.name} is the directory {device.path}: only emulated ones go up and down")
    return device.emulate


def _folder_of(device: Device, root: Path) -> DeviceFolder:
    return DeviceFolder(device.name, (root / _require_emulation(device).image_directory).resolve())


def _identify(device: Device, emulation: Emulation) -> dict[str, object]:
    """Return what the image was made for; another description needs another image."""
    model = emulation.model.model_dump(mode="json") if emulation.model else None
    shape = emulation.model_dump(mode="json", include=set(_SHAPE))
    return {"device": device.name, **shape, "model": model}


def _require_same(folder: DeviceFolder, device: Device, emulation: Emulation) -> None:
    if not folder.state.exists():
        return
    existing, wanted = read_sealed(folder.state), _identify(device, emulation)
    if existing == wanted:
        return
    same_shape = all(existing.get(key) == wanted.get(key) for key in _SHAPE)
    difference = " and another model" if same_shape else ""
    raise UserError(
        f"device {device.name} exists with {_describe(existing)}{difference}, and its spec "
        f"asks for {_describe(wanted)}; `knobscope devices down {device.name}` removes the existing one and its data"
    )


def _describe(identity: Mapping[str, object]) -> str:
    options = [f"{key} {identity[key]}".lower() for key in _SHAPE[2:] if key in identity]
    return " with ".join([f"{identity['size']} of {identity['filesystem']}", *options])


def _make_image(folder: DeviceFolder, device: Device, emulation: Emulation) -> None:
    """Make the image with its file system, as ourselves: only attaching it needs root."""
    if not folder.state.exists():
        folder.image.unlink(missing_ok=True)  # of a call that was killed
    if (free := shutil.disk_usage(folder.images).free) < emulation.size.bytes:
        raise UserError(
            f"device {device.name}: {folder.images} has {free >> 20} MiB free, and the image may grow to "
            f"{emulation.size}; free some space, or make `size` smaller"
        )
    for directory in (folder.path.parent, folder.path, folder.mount):
        directory.mkdir(exist_ok=True)
        directory.chmod(0o711)  # servers run as another user when we are root, and must get through
    with folder.image.open("wb") as image:
        image.truncate(emulation.size.bytes)
    folder.image.chmod(0o600)
    make_filesystem(emulation.filesystem, folder.image, block_bytes=emulation.block_bytes, journal=emulation.journal)
    if isinstance(emulation.model, Delay):
        _write_whole(folder.image)
    write_sealed(folder.state, _identify(device, emulation))


def _write_whole(image: Path) -> None:
    """Write every block of an image: the file system below takes a commit of its own for one that is written first.

    Blocks that mkfs wrote keep what is in them; those of which it only said that they are zero are written, too.
    """
    with image.open("r+b") as file:
        while part := file.read(1 << 20):
            file.seek(-len(part), os.SEEK_CUR)
            file.write(part)
        file.flush()
        os.fsync(file.fileno())


def _mount(folder: DeviceFolder, emulation: Emulation) -> None:
    below = folder.image if emulation.model is None else folder.answering
    if os.geteuid() == 0:
        loop = folder.find_loop() or Path(run_as_root("losetup", [*_LOSETUP_OPTIONS, str(below)])).name
        restore_queue(find_block_device(Path("/dev", loop)))
        set_queue(loop, rotational=_is_rotational(folder, emulation))
        run_as_root("mount", ["-o", "nosuid,nodev", f"/dev/{loop}", str(folder.mount)])
        run_as_root("chown", [f"{os.geteuid()}:{os.getegid()}", str(folder.mount)])
    else:
        if leftover := folder.find_loop():  # of a call that ended before it could link: never mount an image twice
            call_helper(["down", leftover])
        point = Path(call_helper(["up", str(below)]))
        folder.link_mount(point)
        loop = point.name
    if not is_loop_direct(loop):
        print(
            f"device {folder.device}: direct I/O is not granted on {below}; the page cache of "
            f"{folder.images} stands between the emulated device and its storage",
            file=sys.stderr,
        )


def _is_rotational(folder: DeviceFolder, emulation: Emulation) -> bool | None:
    """Whether the device is a disk; None where the kernel knows, since nothing stands between image and loop device."""
    if isinstance(emulation.model, Delay):
        try:
            return find_tier(find_block_device(folder.images)) == "hdd"
        except UserError:  # main memory, or a network file system: no disk that one could see turn
            return False
    return None if emulation.model is None else emulation.model.kind == "disk"
