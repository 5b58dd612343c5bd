"""Where the data of a running server lie: its directory, and the block device below, seen from outside a container."""

import contextlib
import os
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from knobscope.commands.attach.processes import PROC
from knobscope.commands.attach.program import read_name
from knobscope.devices import BlockDevice, find_block_device
from knobscope.devices.mounts import Mount, find_mount_of
from knobscope.errors import UserError
from knobscope.watch import FileTree, read_tree

_LAST_STANDARD = 2  # descriptor: standard error
_LEAST_SHARE = 0.02  # of the open files, below which a device is not worth a word


@dataclass(frozen=True)
class DataPlace:
    """The data directory of a server, as it sees it itself, and the device that it lies on."""

    pid: int
    directory: Path
    block: BlockDevice
    mount: Mount
    elsewhere: tuple[str, ...] = ()  # devices that other files lie on which it has open for writing

    @property
    def seen(self) -> Path:
        """The directory as we see it."""
        return _see(self.pid, self.directory, self.mount)

    def read_trees(self) -> list[FileTree]:
        """Return its files, and those in directories that links in it lead to."""
        links = [Path(), *sorted(self._list_links())]
        return [self._read_tree(link) for link in links]

    def _read_tree(self, link: Path) -> FileTree:
        directory = self.directory / link
        if link != Path():
            target = (self.seen / link).readlink()
            directory = Path(os.path.normpath(self.directory / link.parent / target))
        mount = find_mount_of(directory, PROC / str(self.pid))
        return read_tree(_see(self.pid, directory, mount), "" if link == Path() else str(link), mount)

    def _list_links(self) -> Iterator[Path]:
        """Yield links to directories, directly in the data directory or one level below."""
        for folder in [self.seen, *(entry for entry in self.seen.iterdir() if entry.is_dir())]:
            with contextlib.suppress(OSError):  # not ours to read
                for entry in folder.iterdir():
                    if entry.is_symlink() and self._leads_to_directory(entry):
                        yield entry.relative_to(self.seen)

    def _leads_to_directory(self, link: Path) -> bool:
        inside = self.directory / link.relative_to(self.seen).parent / link.readlink()
        return (PROC / str(self.pid) / "root" / str(inside).lstrip("/")).is_dir()


def find_data(pid: int, pids: Iterable[int], device: BlockDevice | None) -> DataPlace:
    """Return where a server's data lie: its working directory if it writes there, else where it has files open.

    `device`: take what lies on this one. UserError: nothing is known, or there is no block device.
    """
    files = Counter(_list_written(pids))
    directory = _find_directory(pid, files)
    mount = find_mount_of(directory, PROC / str(pid))
    block = device or _find_block(pid, directory, mount)
    device_counts = Counter(
        name for file, count in files.items() for name in [_name_device(file)] for _ in range(count) if name
    )
    total = sum(device_counts.values())
    elsewhere = tuple(
        name for name, count in device_counts.items() if name != block.name and count >= _LEAST_SHARE * total
    )
    return DataPlace(pid, directory, block, mount, elsewhere)


def _find_directory(pid: int, files: "Counter[tuple[Path, int]]") -> Path:
    try:
        current = (PROC / str(pid) / "cwd").readlink()
    except PermissionError as refused:
        whose = "another user's to see; run attach as root, or as that user"
        raise UserError(
            f"attach: the files of process {pid} ({read_name(pid)}) are "
            + (whose if os.geteuid() else "not shown even to root, as in a sandbox; attach from inside of that")
        ) from refused
    written = [(path, device) for path, device in files if not path.is_relative_to("/var/log")]
    if current != Path("/") and (not written or any(path.is_relative_to(current) for path, _ in written)):
        return current
    if not written:
        raise UserError(
            f"attach: process {pid} ({read_name(pid)}) has no file open for writing, so its device is not known; "
            "expected a process of a DBMS server, or its device with --device"
        )
    device = Counter(device for _, device in written).most_common(1)[0][0]
    return Path(os.path.commonpath([path.parent for path, on in written if on == device]))


def _list_written(pids: Iterable[int]) -> Iterator[tuple[Path, int]]:
    """Yield regular files that processes have open for writing: their paths to these, and the number of the device."""
    for pid in pids:
        with contextlib.suppress(FileNotFoundError, ProcessLookupError, PermissionError):  # ended, or not ours
            for link in (PROC / str(pid) / "fd").iterdir():
                if int(link.name) <= _LAST_STANDARD:
                    continue  # where it logs to
                with contextlib.suppress(OSError):
                    status = link.stat()
                    flags = (PROC / str(pid) / "fdinfo" / link.name).read_text()
                    mode = int(next(line for line in flags.splitlines() if line.startswith("flags:")).split()[1], 8)
                    is_kept = stat.S_ISREG(status.st_mode) and status.st_nlink
                    if is_kept and mode & os.O_ACCMODE != os.O_RDONLY:
                        yield link.readlink(), status.st_dev


def _name_device(file: tuple[Path, int]) -> str | None:
    entry = Path(f"/sys/dev/block/{os.major(file[1])}:{os.minor(file[1])}")
    return entry.resolve().name if entry.exists() else None


def _find_block(pid: int, directory: Path, mount: Mount) -> BlockDevice:
    path = _see(pid, directory, mount)
    try:
        return find_block_device(path)
    except UserError as problem:
        if os.major(path.stat().st_dev) == 0 and Path(mount.source).is_block_device():  # btrfs in a container
            return find_block_device(Path(mount.source))
        raise UserError(f"attach: {problem}") from problem


def _see(pid: int, directory: Path, mount: Mount) -> Path:
    """Return a directory of a process by a path that leads there from outside its mounts.

    What a container keeps in its own layer lies in a directory of the machine, which has the inodes that the block
    layer shows.
    """
    upper = next((option[9:] for option in mount.options if option.startswith("upperdir=")), None)
    if mount.filesystem == "overlay" and upper is not None:
        path = Path(upper) / directory.relative_to(mount.point)
        return next(place for place in (path, *path.parents) if place.exists())  # nothing is written yet below that one
    if (PROC / str(pid) / "ns" / "mnt").readlink() == (PROC / "self" / "ns" / "mnt").readlink():
        return directory
    return PROC / str(pid) / "root" / str(directory).lstrip("/")
