"""What lies below a block device: partitions, loop devices and device-mapper volumes end on disks."""

import os
from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.devices.block import BlockDevice, find_block_device
from knobscope.devices.mounts import find_mount
from knobscope.durable_files import DamagedFileError, read_sealed
from knobscope.errors import UserError

if TYPE_CHECKING:
    from knobscope.specs.models.device import Tier  # with all other models, which who only watches does not need

_MEMORY_DISKS = ("ram", "zram", "pmem")
_CLOUD_DISKS = ("vd", "xvd")
#: Network volumes that call themselves NVMe or SCSI disks (Amazon EBS, Google Persistent Disk, Azure, Hetzner).
_CLOUD_MODELS = (
    "Amazon Elastic Block Store",
    "nvme_card-pd",
    "PersistentDisk",
    "MSFT NVMe Accelerator",
    "Virtual Disk",
)
_FLUSHES = slice(15, 17)  # columns of `stat`, since 5.5
_SPEED: "list[Tier]" = ["hdd", "cloud", "sata_ssd", "nvme_ssd", "memory"]


def find_bottom_disks(block: BlockDevice) -> list[BlockDevice]:
    """Return the disks that a block device finally uses, sorted by number.

    A partition ends on its disk, a loop device on the disk below its image file, a device-mapper or RAID volume on all
    its members. A loop device whose image lies in memory, or cannot be seen from here, is a disk itself.
    """
    paths = _descend(_sysfs(block.major, block.minor))
    return sorted((_block_of(path) for path in paths), key=lambda disk: (disk.major, disk.minor))


def find_tier(block: BlockDevice) -> "Tier":
    """Return what kind of device the kernel says this is; the slowest one where a volume has several disks."""
    return min((_tier_of_disk(disk) for disk in find_bottom_disks(block)), key=_SPEED.index)


def read_stat(block: BlockDevice) -> list[int]:
    """Return the kernel's sums of a block device (https://docs.kernel.org/block/stat.html). OSError: it is gone.

    The kernel counts flushes of disks only: those of a partition or a volume are the mean of the disks below.
    """
    path = _sysfs(block.major, block.minor)
    sums = _read_numbers(path)
    disks = _descend(path, through_images=False)
    if disks != {path} and not any(sums[_FLUSHES]):
        columns = zip(*(_read_numbers(disk)[_FLUSHES] for disk in disks), strict=True)
        sums[_FLUSHES] = [sum(column) // len(disks) for column in columns]
    return sums


def is_loop_direct(loop: str) -> bool:
    """Whether a loop device got direct I/O on its image: asked for is not granted."""
    return Path("/sys/block", loop, "loop/dio").read_text().strip() == "1"


def _sysfs(major: int, minor: int) -> Path:
    return Path(f"/sys/dev/block/{major}:{minor}").resolve(strict=True)


def _block_of(path: Path) -> BlockDevice:
    major, minor = (path / "dev").read_text().strip().split(":")
    return BlockDevice(path.name, int(major), int(minor))


def _descend(path: Path, *, through_images: bool = True) -> set[Path]:
    """Return the disks below a device of sysfs; without `through_images` a loop device is one, whatever it lies on."""
    if (path / "partition").exists():
        return _descend(path.parent, through_images=through_images)
    slaves = path / "slaves"
    below = [member.resolve() for member in slaves.iterdir()] if slaves.is_dir() else []
    image = _find_image(path) if through_images else None
    if image is not None and (backing := _device_of_file(image)) is not None:
        below = [backing]
    disks = (_descend(member, through_images=through_images) for member in below)
    return set().union(*disks) if below else {path}


def _read_numbers(path: Path) -> list[int]:
    return [int(number) for number in (path / "stat").read_text().split()]


def _find_image(path: Path) -> Path | None:
    """Return the image file of a loop device, when it has one that we can see."""
    backing = path / "loop" / "backing_file"
    if not backing.exists():
        return None
    image = Path(os.fsdecode(backing.read_bytes().removesuffix(b"\n")))
    below = image.with_name("disk.img")  # what a program of ours passes its requests on to, which delays them
    if image.name == "answering" and below.exists() and _is_delayed(image.with_name("state.json")):
        return below
    return image if image.exists() else None


def _is_delayed(state: Path) -> bool:
    """Whether a device of ours passes requests on; a modelled one answers them as its model says, wherever it lies."""
    try:
        model = read_sealed(state)["model"]
    except (OSError, DamagedFileError, KeyError):
        return False
    return isinstance(model, dict) and model.get("kind") == "delay"


def _device_of_file(file: Path) -> Path | None:
    """Return the block device of a file in sysfs, or None where its file system has none (memory, network)."""
    try:
        block = find_block_device(file)
    except UserError:
        return None
    return _sysfs(block.major, block.minor)


def _tier_of_disk(disk: BlockDevice) -> "Tier":
    if disk.name.startswith(_MEMORY_DISKS) or _lies_in_memory(disk):
        return "memory"
    if disk.name.startswith(_CLOUD_DISKS) or any(model in _model(disk) for model in _CLOUD_MODELS):
        return "cloud"
    if disk.name.startswith("nvme"):
        return "nvme_ssd"
    rotational = Path("/sys/block", disk.name, "queue/rotational").read_text().strip() == "1"
    return "hdd" if rotational else "sata_ssd"


def _lies_in_memory(disk: BlockDevice) -> bool:
    image = _find_image(Path("/sys/block", disk.name))
    return image is not None and find_mount(image).filesystem in ("tmpfs", "ramfs")


def _model(disk: BlockDevice) -> str:
    model = Path("/sys/block", disk.name, "device/model")
    return model.read_text().strip() if model.exists() else ""
