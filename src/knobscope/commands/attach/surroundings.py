"""What holds a server back from outside: limits of its cgroups on the device, and swap."""

import contextlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from knobscope.commands.attach.processes import PROC, find_hierarchy, read_cgroup
from knobscope.devices import BlockDevice
from knobscope.devices.disks import find_bottom_disks
from knobscope.processes import read_process_stat

#: File below a cgroup of version 1 -> operation, and whether it limits bytes.
_VERSION_1 = {
    "blkio.throttle.read_iops_device": ("read", False),
    "blkio.throttle.write_iops_device": ("write", False),
    "blkio.throttle.read_bps_device": ("read", True),
    "blkio.throttle.write_bps_device": ("write", True),
}
#: Key in `io.max` of version 2 -> the same.
_VERSION_2 = {"riops": ("read", False), "wiops": ("write", False), "rbps": ("read", True), "wbps": ("write", True)}
_MAJOR_FAULTS = slice(9, 11)  # fields of /proc/PID/stat, counted after the name: own, and of children that have ended


@dataclass(frozen=True)
class Limit:
    """How much of the device a cgroup of the server may use."""

    file: Path
    op: str
    is_bytes: bool
    per_s: float


@dataclass(frozen=True)
class Surroundings:
    """Limits and counters at one moment."""

    limits: tuple[Limit, ...]
    pages_swapped_in: int  # since boot, by the whole machine
    major_faults: int  # of the server's processes since they started
    bytes_in_swap: int  # of the server's processes


def read_surroundings(block: BlockDevice, pid: int, pids: Iterable[int]) -> Surroundings:
    """Return them; `pid`: the server's first process, `pids`: all of them."""
    counters = dict(line.split() for line in (PROC / "vmstat").read_text().splitlines())
    faults, swapped = 0, 0
    for each in pids:
        with contextlib.suppress(OSError):  # ended
            faults += sum(map(int, read_process_stat(each)[_MAJOR_FAULTS]))
            status = (PROC / str(each) / "status").read_text(errors="replace").splitlines()
            swapped += sum(int(line.split()[1]) << 10 for line in status if line.startswith("VmSwap:"))
    # A limit is one of a disk: the kernel takes none of a partition.
    numbers = {f"{device.major}:{device.minor}" for device in (block, *find_bottom_disks(block))}
    limits = (*_list_version_1(pid, numbers), *_list_version_2(pid, numbers))
    return Surroundings(limits, int(counters.get("pswpin", 0)), faults, swapped)


def _list_version_1(pid: int, numbers: set[str]) -> Iterator[Limit]:
    lines = (PROC / str(pid) / "cgroup").read_text(errors="surrogateescape").splitlines()
    path = next((line.split(":", 2)[2] for line in lines if "blkio" in line.split(":", 2)[1].split(",")), None)
    mount = _find_mount_of_blkio()
    if path is None or mount is None:
        return
    for directory in _list_ancestors(mount, path):
        for name, (op, is_bytes) in _VERSION_1.items():
            for number, per_s in _read_lines(directory / name):
                if number in numbers:
                    yield Limit(directory / name, op, is_bytes, float(per_s))


def _list_version_2(pid: int, numbers: set[str]) -> Iterator[Limit]:
    hierarchy, path = find_hierarchy(), read_cgroup(pid)
    if hierarchy is None or path is None:
        return
    for directory in _list_ancestors(hierarchy, path):
        for number, *fields in _read_lines(directory / "io.max"):
            for field in fields if number in numbers else ():
                key, _, per_s = field.partition("=")
                if per_s != "max" and key in _VERSION_2:
                    yield Limit(directory / "io.max", *_VERSION_2[key], float(per_s))


def _find_mount_of_blkio() -> Path | None:
    for line in (PROC / "self" / "mountinfo").read_text(errors="surrogateescape").splitlines():
        fields, _, filesystem = line.partition(" - ")
        kind, _, options = filesystem.split(" ", 2)  # the source may be empty
        if kind == "cgroup" and "blkio" in options.split(","):
            return Path(fields.split()[4])
    return None


def _list_ancestors(mount: Path, path: str) -> Iterator[Path]:
    """Yield the directories of a cgroup and of those above it."""
    directory = mount / path.strip("/")
    yield from (place for place in (directory, *directory.parents) if place.is_relative_to(mount))


def _read_lines(file: Path) -> Iterator[list[str]]:
    with contextlib.suppress(OSError):  # no such controller, or the root of the hierarchy
        yield from (line.split() for line in file.read_text().splitlines())
