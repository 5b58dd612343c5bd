"""Directories of our own, which nobody else can open and therefore nobody else can hold."""

import fcntl
import os
import pwd
import stat
from collections.abc import Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from knobscope.errors import UserError

_MODE = 0o711  # as root, servers run as another user and must get through
#: Descriptor -> directory that it holds, or held until it was closed.
_HELD: dict[int, Path] = {}


def hold_directory(device: str, directory: Path, *, exclusive: bool) -> int:
    """Return a descriptor that holds a directory, made if need be, until it is closed.

    Waits while another process of ours holds it; who waited for one that was removed makes another. Raises UserError
    for a directory that is not ours alone.
    """
    while True:
        try:
            make_directory(device, directory)
            descriptor = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
        except FileNotFoundError:
            continue  # another process of ours found it empty and removed it
        try:
            _require_ours(device, directory, os.fstat(descriptor))
        except UserError:
            os.close(descriptor)
            raise
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        if directory.is_dir() and os.path.samestat(os.fstat(descriptor), directory.lstat()):
            _HELD[descriptor] = directory.resolve()
            return descriptor
        os.close(descriptor)


@contextmanager
def released(point: Path) -> Iterator[None]:
    """Let go of the directories below a mount point that this process holds, and hold them again at the end.

    Their descriptors stay the same numbers, for those who close them.
    """
    below = {number: path for number, path in _HELD.items() if path.is_relative_to(point) and _is_open(number, path)}
    nothing = os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)
    for number in below:
        os.dup2(nothing, number, inheritable=False)
    os.close(nothing)
    try:
        yield
    finally:
        for number, path in below.items():
            again = hold_directory(path.name, path, exclusive=False)
            os.dup2(again, number, inheritable=False)
            os.close(again)
            _HELD[number] = path


def _is_open(descriptor: int, path: Path) -> bool:
    """Whether a descriptor is still that of the directory; who held it closes it without a word."""
    try:
        return path.is_dir() and os.path.samestat(os.fstat(descriptor), path.lstat())
    except OSError:
        return False


def make_directory(device: str, directory: Path) -> None:
    """Make a directory that others can only pass through, or find it made.

    Raises UserError for one that somebody else controls: what we and our servers write there could be led elsewhere.
    """
    _require_kept(device, directory)
    try:
        directory.mkdir(mode=_MODE)
        with suppress(FileNotFoundError):  # another process of ours found it empty
            directory.chmod(_MODE)  # whatever the umask
    except FileExistsError:
        _require_ours(device, directory, directory.lstat())
    except OSError as error:
        raise UserError(
            f"device {device}: cannot write to {directory.parent} ({error.strerror}); "
            "give this user the right to, or name another directory"
        ) from error


def _require_kept(device: str, directory: Path) -> None:
    """Raise UserError where another user may put something else in place of a directory of root's, or of one above it.

    Who became root through sudo may; so may a user without an account here, as that of a directory which a container
    mounts.
    """
    if os.geteuid() != 0:
        return
    own = {0, int(os.environ.get("SUDO_UID", "0"))}  # a group with the number of a user is the user's own
    for parent in filter(Path.is_dir, directory.parents):
        status = parent.stat()
        if (flaw := _find_flaw(status, own)) is not None:
            raise UserError(
                f"device {device}: {flaw} can rename what is in {parent} (mode {stat.S_IMODE(status.st_mode):04o}), "
                "expected directories from / on in which only root can, or others only what is theirs: chown root, or "
                f"chmod +t, {parent}; name another directory; or run as an ordinary user"
            )


def _find_flaw(status: os.stat_result, own: Collection[int]) -> str | None:
    """Return who else may rename what is in a directory; None: nobody."""
    shared = 0 if status.st_mode & stat.S_ISVTX else status.st_mode
    if shared & stat.S_IWOTH:
        return "anybody"
    if shared & stat.S_IWGRP and status.st_gid not in own:
        return f"group {status.st_gid}"
    return f"user {status.st_uid}" if status.st_uid not in own and _has_account(status.st_uid) else None


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


def _require_ours(device: str, directory: Path, status: os.stat_result) -> None:
    if not stat.S_ISDIR(status.st_mode):
        flaw = "is no directory"
    elif status.st_uid != os.geteuid():
        flaw = f"belongs to user {status.st_uid}"
    elif status.st_mode & 0o022:
        flaw = f"has mode {stat.S_IMODE(status.st_mode):04o}"
    else:
        return
    raise UserError(
        f"device {device}: {directory} exists and {flaw}, expected a directory of user {os.geteuid()} in which nobody "
        "else can write; remove it, or run as its owner"
    )
