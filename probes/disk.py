"""The followed device as sysfs shows it: its disk, the range it takes on it, hardware queues and tags."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from pathlib import Path

from kernel import UnavailableError

__all__ = ["Disk", "find_disk"]

_BLOCK_CLASS = Path("/sys/class/block")
_WHOLE = 2**64 - 1  # where a disk ends, as far as its requests are concerned
_MAX_TAGS = 2048  # what an I/O scheduler may use, whatever the driver has


@dataclass(frozen=True)
class Disk:
    """A disk, or the range [first_sector, end_sector) of it; `slots` is a power of two above the highest tag.

    `requests`: the disk whose requests are counted. That is the disk itself, or what it hides below itself: a multipath
    NVMe device has no requests of its own, and its path has no number.
    """

    device: str
    directory: Path  # in sysfs, links resolved
    requests: Path
    is_hidden: bool
    first_sector: int
    end_sector: int
    queues: int
    slots: int
    sequence_file: Path  # tells a number that the kernel changes with every new medium
    sequence: str

    def is_present(self) -> bool:
        """Whether the device is still there and still the same (a loop device may have got another file)."""
        try:
            return self.directory.is_dir() and self.sequence_file.read_text() == self.sequence
        except OSError:
            return False

    def is_range(self) -> bool:
        """Whether it is a partition, not the whole disk."""
        return self.end_sector < _WHOLE

    def is_idle(self) -> bool:
        """Whether the kernel knows of no read or write that is under way."""
        return not any(int(number) for number in (self.requests / "inflight").read_text().split())

    def list_devices(self) -> tuple[str, ...]:
        """Return MAJ:MIN of it and of its partitions: what file systems on it call their device."""
        return tuple((entry / "dev").read_text().strip() for entry in (self.directory, *self._list_partitions()))

    def _list_partitions(self) -> list[Path]:
        return [entry.parent for entry in self.directory.glob("*/partition")]


def find_disk(device: str) -> Disk:
    """Describe the device "MAJ:MIN"; UnavailableError when it does not exist or has no requests to observe."""
    directory = Path(os.path.realpath(Path("/sys/dev/block", device)))
    if not directory.is_dir():
        raise UnavailableError(f"there is no block device {device}")
    is_partition = (directory / "partition").exists()
    disk = directory.parent if is_partition else directory
    requests = _find_path(disk)
    queues = [entry for entry in (requests / "mq").glob("*") if entry.name.isdigit()]
    if not queues:
        raise UnavailableError(f"{directory.name} ({device}) is bio-based and has no requests; follow the disk below")
    tags = [int((queue / "nr_tags").read_text()) for queue in queues]
    tags += [int((requests / "queue/nr_requests").read_text()), _MAX_TAGS]
    first = int((directory / "start").read_text()) if is_partition else 0
    size = int((directory / "size").read_text())
    sequence_file = disk / ("diskseq" if (disk / "diskseq").exists() else "dev")  # since 5.15
    return Disk(
        device=device,
        directory=directory,
        requests=requests,
        is_hidden=requests != disk,
        first_sector=first,
        end_sector=first + size if is_partition else _WHOLE,
        queues=len(queues),
        slots=1 << (max(tags) + 1).bit_length(),
        sequence_file=sequence_file,
        sequence=sequence_file.read_text(),
    )


def _find_path(disk: Path) -> Path:
    """Return the disk that has the requests: for an NVMe device with multipath its path, which has no number."""
    if (disk / "mq").is_dir() or not (numbers := re.fullmatch(r"nvme(\d+)n(\d+)", disk.name)):
        return disk
    subsystem, namespace = numbers.groups()
    paths = sorted(_BLOCK_CLASS.glob(f"nvme{subsystem}c*n{namespace}"))
    if len(paths) > 1:
        names = ", ".join(path.name for path in paths)
        raise UnavailableError(
            f"{disk.name} has {len(paths)} paths ({names}); only devices with one path can be followed"
        )
    return Path(os.path.realpath(paths[0])) if paths else disk
