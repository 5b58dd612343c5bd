"""One user of a disk at a time, across all processes and users of the machine."""

import fcntl
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from knobscope.devices.block import BlockDevice
from knobscope.devices.disks import find_bottom_disks
from knobscope.errors import UserError

__all__ = ["device_lock"]

_DIRECTORIES = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - fixed, since TMPDIR differs from user to user


@contextmanager
def device_lock(*blocks: BlockDevice) -> Iterator[None]:
    """Hold the disks below block devices for ourselves; waits, and says for whom, while another process has them.

    Loop devices and partitions of one disk exclude each other. The lock is a flock on a file that is opened for reading
    only and never written, so that nobody can misdirect what we write; it ends with the process, however that ends.
    Raises UserError when this process has the lock already, or when the lock file is not what we would have made.
    """
    with ExitStack() as stack:
        disks = {disk for block in blocks for disk in find_bottom_disks(block)}
        for disk in sorted(disks, key=lambda disk: (disk.major, disk.minor)):  # so that two cannot wait for each other
            stack.enter_context(_hold(disk, find_lock_directory() / f"knobscope-{disk.major}-{disk.minor}.lock"))
        yield


def find_lock_directory() -> Path:
    """Return the directory for locks; the choice depends on the machine only, never on who asks."""
    for directory in _DIRECTORIES:
        if directory.is_dir() and directory.stat().st_mode & 0o1777 == 0o1777:
            return directory
    raise UserError(f"no directory for locks: expected one of {', '.join(map(str, _DIRECTORIES))} with mode 1777")


@contextmanager
def _hold(disk: BlockDevice, path: Path) -> Iterator[None]:
    while True:
        descriptor = _open_lock(path)
        try:
            _wait(descriptor, disk)
            if _is_still(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)


def _open_lock(path: Path) -> int:
    """Open the lock file; made without write permission for others, never through a link.

    O_CREAT on a file of somebody else is refused in sticky directories (fs.protected_regular), even for root; so it is
    opened first and made only when it is missing.
    """
    while True:
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            break
        except FileNotFoundError:
            _make_lock(path)
        except OSError as error:
            raise UserError(f"cannot use the lock file {path} ({error.strerror}); remove it") from error
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise UserError(f"the lock file {path} is no regular file; remove it")
    return descriptor


def _make_lock(path: Path) -> None:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_EXCL, 0o444)
    except FileExistsError:
        return  # another process was faster: fine
    os.fchmod(descriptor, 0o444)  # whatever the umask: others must be able to open it
    os.close(descriptor)


def _wait(descriptor: int, disk: BlockDevice) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _find_holder(descriptor)
        if holder == os.getpid():
            raise UserError(f"this process uses disk {disk.name} already and would wait for itself") from None
        print(f"waiting for disk {disk.name}: used by {_describe(holder)}", file=sys.stderr, flush=True)
        fcntl.flock(descriptor, fcntl.LOCK_EX)


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether the file we locked is still the one that others would open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _find_holder(descriptor: int) -> int | None:
    """Return the process that the kernel names as the lock's holder; None when it is out of our sight."""
    status = os.fstat(descriptor)
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] != "FLOCK":  # waiters have "->" there
            continue
        major, minor, inode = fields[5].split(":")
        if int(inode) == status.st_ino and os.makedev(int(major, 16), int(minor, 16)) == status.st_dev:
            return int(fields[4]) if int(fields[4]) > 0 else None
    return None


def _describe(pid: int | None) -> str:
    if pid is None:
        return "a process that cannot be seen from here"
    try:
        command = Path("/proc", str(pid), "cmdline").read_bytes().replace(b"\0", b" ").decode(errors="replace").strip()
    except OSError:  # it has just ended
        return f"process {pid}"
    return f"process {pid} ({command[:80]})"
