"""Files of programs: what processes have mapped outside the directories of a DBMS is not the DBMS's data.

A program and its libraries are read from the device as its data are: pages of Java's class archive, for instance, which
the load client maps. Their names alone do not tell them from files that came and went with the DBMS.
"""

from collections.abc import Iterator, Sequence
from pathlib import Path

from knobscope.devices.extents import AddressIndex
from knobscope.watch.files import FileTree


def read_program_files(own: Sequence[FileTree]) -> list[FileTree]:
    """Return what running processes have mapped and is in none of these trees, as one tree per file system.

    Paths are as the processes see them, which may have mounts of their own.
    """
    own_files = {(tree.device, inode) for tree in own for inode in tree.paths}
    paths_by_device: dict[str, dict[int, str]] = {}
    for device, inode, path in _list_mapped():
        if (device, inode) not in own_files:
            paths_by_device.setdefault(device, {})[inode] = path
    return [FileTree(device, paths, {}, AddressIndex(()), is_own=False) for device, paths in paths_by_device.items()]


def _list_mapped() -> Iterator[tuple[str, int, str]]:
    for process in Path("/proc").iterdir():
        if not process.name.isdigit():
            continue
        try:
            lines = (process / "maps").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue  # it has ended, or is not ours to look at
        for line in lines:
            _, _, _, device, inode, *path = line.split(maxsplit=5)
            if path and inode != "0":
                major, minor = (int(number, 16) for number in device.split(":"))
                yield f"{major}:{minor}", int(inode), path[0]
