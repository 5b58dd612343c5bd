"""The followed device as sysfs shows it: the disks that have its requests, their hardware queues and tags."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from kernel import UnavailableError

MAX_PARTS = 16  # disks that are followed as one
_BLOCK_CLASS, _BLOCK_NUMBERS = Path("/sys/class/block"), Path("/sys/dev/block")
_WHOLE = 2**64 - 1  # where a disk ends, as far as its requests are concerned
_MAX_TAGS = 2048  # what an I/O scheduler may use, whatever the driver has


@dataclass(frozen=True)
class Part:
    """A disk, or the range [first_sector, end_sector) of it; `slots` is a power of two above the highest tag.

    `requests`: the disk whose requests are counted. That is the disk itself, or what it hides below itself: a multipath
    NVMe device has no requests of its own, and its path has no number.
    """

    requests: Path  # in sysfs, links resolved
    is_hidden: bool
    first_sector: int
    end_sector: int
    queues: int
    slots: int
    stat: Path  # the kernel's own sums


@dataclass(frozen=True)
class Disk:
    """A device with requests, or one that has none and the disks below it, which are followed as one.

    `uppers`: MAJ:MIN of what is stacked on these disks (device mapper, md) and of its partitions, the device itself
    among them.
    """

    device: str
    directory: Path  # in sysfs, links resolved
    parts: tuple[Part, ...]
    uppers: tuple[str, ...]
    sequence_file: Path  # tells a number that the kernel changes with every new medium
    sequence: str

    @property
    def queues(self) -> int:
        """How many hardware queues there are, of all disks."""
        return sum(part.queues for part in self.parts)

    @property
    def slots(self) -> int:
        """How many tags a hardware queue has, at most."""
        return max(part.slots for part in self.parts)

    @property
    def is_hidden(self) -> bool:
        """Whether requests go to a path without a number."""
        return any(part.is_hidden for part in self.parts)

    def is_present(self) -> bool:
        """Whether the device is still there and still the same (a loop device may have got another file)."""
        try:
            return self.directory.is_dir() and self.sequence_file.read_text() == self.sequence
        except OSError:
            return False

    def is_idle(self) -> bool:
        """Whether the kernel knows of no read or write that is under way."""
        inflight = (part.requests / "inflight" for part in self.parts)
        return not any(int(number) for file in inflight for number in file.read_text().split())

    def list_devices(self) -> tuple[str, ...]:
        """Return MAJ:MIN of it, its partitions and what is stacked on them: what file systems call their device."""
        return tuple(map(_read_number, dict.fromkeys(_climb([self.directory]))))


def find_disk(device: str) -> Disk:
    """Describe the device "MAJ:MIN"; UnavailableError when it does not exist or has no requests to observe."""
    directory = Path(os.path.realpath(_BLOCK_NUMBERS / device))
    if not directory.is_dir():
        raise UnavailableError(f"there is no block device {device}")
    bottoms = list(dict.fromkeys(_descend(directory)))
    parts = _unite(_describe(bottom) for bottom in bottoms)
    if not parts:
        raise UnavailableError(f"{directory.name} ({device}) is bio-based and has no requests, nor a disk below it")
    if len(parts) > MAX_PARTS:
        raise UnavailableError(f"{directory.name} ({device}) lies on {len(parts)} disks, expected {MAX_PARTS} at most")
    disk = _find_whole(directory)
    sequence_file = disk / ("diskseq" if (disk / "diskseq").exists() else "dev")  # since 5.15
    return Disk(
        device=device,
        directory=directory,
        parts=parts,
        uppers=tuple(_read_number(upper) for upper in dict.fromkeys(_climb(bottoms)) if not _has_requests(upper)),
        sequence_file=sequence_file,
        sequence=sequence_file.read_text(),
    )


def _find_whole(directory: Path) -> Path:
    """Return the disk of a partition, or the disk itself."""
    return directory.parent if (directory / "partition").exists() else directory


def _has_requests(directory: Path) -> bool:
    """Whether a device has requests of its own: bio-based ones have none."""
    return any(_list_queues(_find_path(_find_whole(directory))))


def _descend(directory: Path) -> Iterator[Path]:
    """Yield the devices with requests that a device lies on; itself if it has them."""
    if _has_requests(directory):
        yield directory
        return
    for below in sorted((_find_whole(directory) / "slaves").glob("*")):
        yield from _descend(Path(os.path.realpath(below)))


def _climb(directories: Iterable[Path]) -> Iterator[Path]:
    """Yield devices, their partitions, and what is stacked on any of them; some more than once."""
    for directory in directories:
        own = [directory, *(entry.parent for entry in directory.glob("*/partition"))]
        yield from own
        holders = (Path(os.path.realpath(holder)) for entry in own for holder in (entry / "holders").glob("*"))
        yield from _climb(holders)


def _read_number(directory: Path) -> str:
    return (directory / "dev").read_text().strip()


def _describe(directory: Path) -> Part:
    is_partition, disk = (directory / "partition").exists(), _find_whole(directory)
    requests = _find_path(disk)
    queues = _list_queues(requests)
    tags = [int((queue / "nr_tags").read_text()) for queue in queues]
    tags += [int((requests / "queue/nr_requests").read_text()), _MAX_TAGS]
    first = int((directory / "start").read_text()) if is_partition else 0
    size = int((directory / "size").read_text())
    return Part(
        requests=requests,
        is_hidden=requests != disk,
        first_sector=first,
        end_sector=first + size if is_partition else _WHOLE,
        queues=len(queues),
        slots=1 << (max(tags) + 1).bit_length(),
        stat=(directory if is_partition else requests) / "stat",
    )


def _list_queues(requests: Path) -> list[Path]:
    return [entry for entry in (requests / "mq").glob("*") if entry.name.isdigit()]


def _unite(parts: Iterable[Part]) -> tuple[Part, ...]:
    """Return the parts, each disk once: of several partitions of one the whole disk counts."""
    disks: dict[Path, Part] = {}
    for part in parts:
        before = disks.get(part.requests)
        whole = replace(part, first_sector=0, end_sector=_WHOLE, stat=part.requests / "stat")
        disks[part.requests] = whole if before else part
    return tuple(disks.values())


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
