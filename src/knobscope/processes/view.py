"""Lets another user get at single directories below some that it may not enter, and at nothing else there.

A study may lie in root's home, or in a test's closed temporary directory, while its servers run as a user of their own.
In a mount namespace of the command alone an empty file system covers the closed directory, and what the command needs
is mounted in it again, at the same path. Emulated devices that the command has no data on are not mounted in there: a
device could not be taken down while a server of another study lives.
"""

import ctypes
import os
import pwd
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

__all__ = ["DEVICES_FOLDER", "open_view"]

#: Name of the folder, beside the images, in which emulated devices are mounted.
DEVICES_FOLDER = ".knobscope-devices"

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def open_view(account: pwd.struct_passwd, wanted: Iterable[Path]) -> None:
    """Make the existing paths that are wanted reachable for a user, for this process and its children.

    Raises OSError when the user may not pass one of their parents and no mount namespace can be made here.
    """
    wanted, closed = sorted(set(wanted)), dict[Path, list[Path]]()
    with _acting_as(account):
        for path in wanted:
            if (barrier := _find_barrier(path)) is not None:
                closed.setdefault(barrier, []).append(path)
    if not closed:
        return
    if _libc.unshare(_CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        barrier = next(iter(closed))
        raise OSError(
            number,
            f"user {account.pw_name} may not pass {barrier} and no mount namespace can be made "
            f"({os.strerror(number)}); chmod o+x {barrier}, or work in another directory",
        )
    _mount("none", "/", "", _MS_REC | _MS_SLAVE)  # what is mounted from now on stays in here
    _leave_devices([path.resolve() for path in wanted])
    before = Path.cwd()
    for barrier, paths in closed.items():
        _uncover(barrier, paths)
    os.chdir(before if before.exists() else "/")


@contextmanager
def _acting_as(account: pwd.struct_passwd) -> Iterator[None]:
    groups, group = os.getgroups(), os.getegid()
    os.setgroups([])
    os.setegid(account.pw_gid)
    os.seteuid(account.pw_uid)
    try:
        yield
    finally:
        os.seteuid(0)
        os.setegid(group)
        os.setgroups(groups)


def _find_barrier(path: Path) -> Path | None:
    """Return the uppermost directory above a path that this user may not enter."""
    for child in [*reversed(path.parents), path][1:]:
        try:
            child.stat()
        except PermissionError:
            return child.parent
        except FileNotFoundError:
            return None  # the command will say what it misses
    return None


def _leave_devices(wanted: Sequence[Path]) -> None:
    """Unmount the emulated devices that none of these paths lies on.

    The keeper starts with the standard library alone, so that `knobscope.devices.mounts` cannot be asked here.
    """
    mounted = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    for line in reversed(mounted):  # those that cover others come last
        point = Path(re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), line.split()[4]))
        is_left = DEVICES_FOLDER in point.parts and not any(path.is_relative_to(point) for path in wanted)
        if is_left and _libc.umount2(os.fsencode(point), _MNT_DETACH) != 0:
            number = ctypes.get_errno()
            raise OSError(number, f"cannot unmount {point}: {os.strerror(number)}")


def _uncover(barrier: Path, paths: Iterable[Path]) -> None:
    """Cover a directory with an empty file system that shows only these paths of it."""
    originals = [(path, os.open(path, os.O_PATH)) for path in paths]
    umask = os.umask(0)
    _mount("tmpfs", str(barrier), "tmpfs", _MS_NOSUID | _MS_NODEV, "mode=0711,size=1m")
    for path, descriptor in originals:
        for parent in reversed(path.parents):
            if not parent.exists():
                parent.mkdir(mode=0o711)
        if not path.exists():
            path.mkdir(mode=0o711)
        _mount(f"/proc/self/fd/{descriptor}", str(path), "", _MS_BIND | _MS_REC)
        os.close(descriptor)
    os.umask(umask)


def _mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    if _libc.mount(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {source} on {target}: {os.strerror(number)}")
