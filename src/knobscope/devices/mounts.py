"""Which file system a path lies on, as the kernel tells it."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Mount:
    """One mounted file system."""

    point: Path
    filesystem: str
    source: str  # a block device node, or whatever the file system calls itself
    major: int
    minor: int
    options: frozenset[str] = frozenset()  # of this mount and of the file system


def list_mounts(process: Path = Path("/proc/self")) -> Iterator[Mount]:
    """Yield the mounts that a process sees, in the order in which they cover each other; OSError when it has ended."""
    for line in (process / "mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines():
        own, _, kind = line.partition(" - ")
        number, point, options = own.split()[2], own.split()[4], own.split()[5]
        filesystem, source, more = kind.split(" ", 2)  # the source may be empty
        major, _, minor = number.partition(":")
        together = frozenset(f"{options},{more}".split(","))
        yield Mount(Path(_unescape(point)), filesystem, _unescape(source), int(major), int(minor), together)


def find_mount(path: Path) -> Mount:
    """Return the mount that an existing path lies on; raises FileNotFoundError when there is no such path."""
    return find_mount_of(path.resolve(strict=True))


def find_mount_of(resolved: Path, process: Path = Path("/proc/self")) -> Mount:
    """Return the mount that a path without links lies on, as a process sees it."""
    covering = [mount for mount in list_mounts(process) if resolved.is_relative_to(mount.point)]
    deepest = max(len(mount.point.parts) for mount in covering)
    return [mount for mount in covering if len(mount.point.parts) == deepest][-1]  # the last one covers the others


def _unescape(text: str) -> str:
    """Blank, tab, newline and backslash are written as three octal digits there."""
    return re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), text)
