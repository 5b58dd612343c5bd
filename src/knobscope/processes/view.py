"""Lets a run get at single directories below some that are closed or covered, and at nothing else there.

A study may lie in root's home, or in a test's closed temporary directory, while its servers run as a user of their own.
In a mount namespace of the command alone an empty file system covers the closed directory, and what the command needs
is mounted in it again, at the same path. In the same way directories that everybody writes to, as /tmp, are covered by
those of the run. Emulated devices that the command has no data on are not mounted in there: a
device could not be taken down while a server of another study lives.
"""

import contextlib
import ctypes
import errno
import os
import pwd
import re
import stat
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

#: Name of the folder, next to the images, in which emulated devices are mounted.
DEVICES_FOLDER = ".knobscope-devices"

_CLONE_NEWNS = 0x00020000
_MS_NOSUID, _MS_NODEV, _MS_BIND, _MS_REC, _MS_SLAVE = 2, 4, 4096, 16384, 1 << 19
_MNT_DETACH = 2
_libc = ctypes.CDLL(None, use_errno=True)


def open_view(account: pwd.struct_passwd | None, wanted: Iterable[Path], covers: Mapping[Path, Path]) -> None:
    """Make the existing paths that are wanted reachable for a user, for this process and its children.

    `covers`: directories, and what is mounted over them. Without an account it is for us, to whom nothing is closed.
    Raises OSError when the user may not pass one of the parents and no mount namespace can be made here.
    """
    wanted = sorted(set(wanted))
    closed: dict[Path, list[Path]] = {cover: [] for cover in covers}
    with _acting_as(account):
        for path in wanted:
            barrier = next((cover for cover in covers if path.is_relative_to(cover)), None) or _find_barrier(path)
            if barrier is not None and path != barrier:
                closed.setdefault(barrier, []).append(path)
    if not closed:
        return
    try:
        # Nobody but root may take a mount out of a namespace.
        keep_mounts_private(None if account is None else [path.resolve() for path in wanted])
    except OSError as error:
        barrier = next(iter(closed))
        name = "the user" if account is None else f"user {account.pw_name}"
        message = f"{name} may not pass {barrier} and {error.strerror}"
        raise OSError(error.errno, f"{message}; chmod o+x {barrier}, or work in another directory") from error
    for barrier, paths in closed.items():
        cover(barrier, covers.get(barrier), paths)


def keep_mounts_private(wanted: Sequence[Path] | None) -> None:
    """Let what this process mounts be seen by itself and its children alone, and go with them, also after kill -9.

    Emulated devices without any of the wanted paths are not mounted in here: a copy of their mounts would keep them in
    use. None: all stay. Raises OSError where no mount namespace can be made.
    """
    if _libc.unshare(_CLONE_NEWNS) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"no mount namespace can be made ({os.strerror(number)})")
    mount("none", "/", "", _MS_REC | _MS_SLAVE)
    if wanted is not None:
        leave_devices(wanted)


@contextmanager
def _acting_as(account: pwd.struct_passwd | None) -> Iterator[None]:
    if account is None:
        yield
        return
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


def leave_devices(wanted: Sequence[Path]) -> None:
    """Unmount the emulated devices that none of these paths lies on.

    The keeper starts with the standard library alone, so that `knobscope.devices.mounts` cannot be asked here.
    """
    mounted = Path("/proc/self/mountinfo").read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    for line in reversed(mounted):  # those that cover others come last
        point = Path(re.sub(r"\\([0-7]{3})", lambda match: chr(int(match[1], 8)), line.split()[4]))
        is_left = DEVICES_FOLDER in point.parts and not any(path.is_relative_to(point) for path in wanted)
        if is_left and _libc.umount2(os.fsencode(point), _MNT_DETACH) != 0:
            number = ctypes.get_errno()
            if number in (errno.ENOENT, errno.EINVAL):
                continue  # mounted outside below what is covered in here: it is unmounted from outside, too
            raise OSError(number, f"cannot unmount {point}: {os.strerror(number)}")


def cover(barrier: Path, private: Path | None, paths: Iterable[Path], memory: str = "mode=0711,size=1m") -> None:
    """Cover a directory by another one, or an empty file system, that shows only these paths of it.

    `memory`: options of the empty one.
    """
    existing = [path for path in paths if path.exists()]
    tops = [path for path in existing if not any(ancestor in path.parents for ancestor in existing)]
    originals = [(path, os.open(path, os.O_PATH)) for path in tops]
    if private is None:
        mount("tmpfs", str(barrier), "tmpfs", _MS_NOSUID | _MS_NODEV, memory)
    else:
        mount(str(private), str(barrier), "", _MS_BIND)
    for path, original in originals:
        point = _make_point(barrier, path, is_directory=stat.S_ISDIR(os.fstat(original).st_mode))
        mount(f"/proc/self/fd/{original}", f"/proc/self/fd/{point}", "", _MS_BIND | _MS_REC)
        os.close(original)
        os.close(point)


def _make_point(top: Path, path: Path, *, is_directory: bool) -> int:
    """Return a descriptor of a new or known mount point; the run may write to `top`, and its links are not followed."""
    *folders, name = path.relative_to(top).parts
    descriptor = os.open(top, os.O_PATH | os.O_DIRECTORY)
    umask = os.umask(0)
    for folder in folders:
        descriptor = _step_into(descriptor, folder)
    if is_directory:
        descriptor = _step_into(descriptor, name)
    else:
        flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        descriptor = _exchange(descriptor, os.open(name, flags, 0o444, dir_fd=descriptor), name)
    os.umask(umask)
    return descriptor


def _step_into(directory: int, name: str) -> int:
    with contextlib.suppress(FileExistsError):
        os.mkdir(name, 0o711, dir_fd=directory)
    return _exchange(directory, os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory), name)


def _exchange(directory: int, descriptor: int, name: str) -> int:
    """Close a directory for what was opened in it, which has to be ours."""
    os.close(directory)
    if os.fstat(descriptor).st_uid != os.geteuid():
        raise OSError(errno.EPERM, f"a program of the run has made {name} where its directories are to be mounted")
    return descriptor


def mount(source: str, target: str, kind: str, flags: int, data: str = "") -> None:
    """Mount something; OSError says what and where."""
    arguments = (os.fsencode(source), os.fsencode(target), kind.encode(), ctypes.c_ulong(flags), data.encode())
    if _libc.mount(*arguments) != 0:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot mount {source} on {target}: {os.strerror(number)}")
