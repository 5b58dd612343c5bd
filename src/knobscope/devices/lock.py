"""One user of a disk at a time, across all processes and users of the machine."""

import fcntl
import grp
import os
import pwd
import stat
import sys
import textwrap
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from knobscope.devices.block import BlockDevice
from knobscope.devices.disks import find_bottom_disks
from knobscope.errors import UserError

#: Root's, and of the group of those whom root lets measure: nobody else can open, and so hold, a lock in there.
_CLOSED = Path("/run/knobscope")
_GROUP = "knobscope-users"
_OPEN = (Path("/run/lock"), Path("/tmp"))  # noqa: S108 - fixed, since TMPDIR differs from user to user
#: How long root and the group wait for an open lock, which anybody may hold.
_PATIENCE_S = 600.0


@contextmanager
def device_lock(*blocks: BlockDevice) -> Iterator[None]:
    """Hold the disks below block devices for ourselves; waits, and says for whom, while another process has them.

    Loop devices and partitions of one disk exclude each other. A lock is a flock on a file that is opened for reading
    only and never written, so that nobody can misdirect what we write; it ends with the process, however that ends.
    Everybody takes the open lock. Root and its group take the closed one first, wait for each other without a limit,
    and for others at most ten minutes. Raises UserError when this process has the lock already, or when the lock file
    is not what we would have made.
    """
    with ExitStack() as stack:
        disks = {disk for block in blocks for disk in find_bottom_disks(block)}
        for disk in sorted(disks, key=lambda disk: (disk.major, disk.minor)):  # so that two cannot wait for each other
            name = f"knobscope-{disk.major}-{disk.minor}.lock"
            if (closed := find_closed_directory()) is None:
                stack.enter_context(_hold(disk, find_open_directory() / name))
            else:
                stack.enter_context(_hold(disk, closed / name))
                stack.enter_context(_hold_for_a_while(disk, find_open_directory() / name))
        yield


def count_other_users() -> int:
    """Return how many other processes have a disk of this machine for themselves: they measure, or load data for it."""
    files = set()
    for directory in filter(None, (find_closed_directory(), find_open_directory())):
        for path in directory.glob("knobscope-*.lock"):
            with suppress(OSError):  # it has just been removed
                status = path.lstat()
                files.add((status.st_dev, status.st_ino))
    return len({pid for pid, *file in _list_flocks() if tuple(file) in files} - {os.getpid()})


def find_closed_directory() -> Path | None:
    """Return the directory for locks that only root and its group can open, which root makes; None for others."""
    if os.geteuid() == 0:
        try:
            _CLOSED.mkdir(mode=0o700, exist_ok=True)
            os.chown(_CLOSED, 0, _find_group())
            _CLOSED.chmod(0o1770)
        except OSError as error:
            print(f"cannot make {_CLOSED} ({error.strerror}): any user can hold the lock of a disk", file=sys.stderr)
            return None
    return _CLOSED if os.access(_CLOSED, os.R_OK | os.W_OK | os.X_OK, effective_ids=True) else None


def _find_group() -> int:
    try:
        return grp.getgrnam(_GROUP).gr_gid
    except KeyError:  # root lets nobody else measure
        return 0


def find_open_directory() -> Path:
    """Return the directory for locks of everybody; the choice depends on the machine only, never on who asks."""
    for directory in _OPEN:
        if directory.is_dir() and directory.stat().st_mode & 0o1777 == 0o1777:
            return directory
    raise UserError(f"no directory for locks: expected one of {', '.join(map(str, _OPEN))} with mode 1777")


@contextmanager
def _hold(disk: BlockDevice, path: Path, deadline: float | None = None) -> Iterator[None]:
    """Hold one lock file; raises TimeoutError when it was not free until the deadline."""
    while True:
        descriptor = _open_lock(path)
        try:
            _wait(descriptor, disk, deadline)
            if _is_still(descriptor, path):
                yield
                return
        finally:
            os.close(descriptor)


@contextmanager
def _hold_for_a_while(disk: BlockDevice, path: Path) -> Iterator[None]:
    """Hold an open lock if we get it in time; otherwise say why not, and go on without."""
    with ExitStack() as stack:
        try:
            stack.enter_context(_hold(disk, path, time.monotonic() + _PATIENCE_S))
        except (TimeoutError, UserError) as reason:
            print(f"going on without {path}: {reason}; whoever has it may disturb the figures", file=sys.stderr)
        yield


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


def _wait(descriptor: int, disk: BlockDevice, deadline: float | None) -> None:
    if _try_lock(descriptor):
        return
    holder = _find_holder(descriptor)
    if holder == os.getpid():
        raise UserError(f"this process uses disk {disk.name} already and would wait for itself")
    limit = "" if deadline is None else f", at most {_PATIENCE_S / 60:.3g} minutes"
    print(f"waiting for disk {disk.name}{limit}: used by {_describe(holder)}", file=sys.stderr, flush=True)
    if deadline is None:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        return
    while not _try_lock(descriptor):
        if time.monotonic() > deadline:
            raise TimeoutError(f"disk {disk.name} is still used by {_describe(_find_holder(descriptor))}")
        time.sleep(0.2)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _is_still(descriptor: int, path: Path) -> bool:
    """Whether the file we locked is still the one that others would open."""
    try:
        return os.path.samestat(os.fstat(descriptor), path.lstat())
    except FileNotFoundError:
        return False


def _find_holder(descriptor: int) -> int | None:
    """Return the process that the kernel names as the lock's holder; None when it is out of our sight."""
    status = os.fstat(descriptor)
    return next((pid or None for pid, *file in _list_flocks() if file == [status.st_dev, status.st_ino]), None)


def _list_flocks() -> Iterator[tuple[int, int, int]]:
    """Yield (process, device number, inode) of all locks of whole files that are held; 0 for a process out of sight."""
    for line in Path("/proc/locks").read_text().splitlines():
        fields = line.split()
        if fields[1] == "FLOCK":  # waiters have "->" there
            major, minor, inode = fields[5].split(":")
            yield max(int(fields[4]), 0), os.makedev(int(major, 16), int(minor, 16)), int(inode)


def _describe(pid: int | None) -> str:
    if pid is None:
        return "a process that cannot be seen from here"
    try:
        uid = Path("/proc", str(pid)).stat().st_uid
        program, *arguments = Path("/proc", str(pid), "cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:  # it has just ended
        return f"process {pid}"
    try:
        user = pwd.getpwuid(uid).pw_name
    except KeyError:
        user = str(uid)
    command = textwrap.shorten(" ".join([Path(program).name, *arguments]), 80, placeholder=" ...")
    shown = "".join(character if character.isprintable() else "?" for character in command)
    return f"process {pid} of user {user} ({shown})"
