"""Directories of our own, which nobody else can open and therefore nobody else can hold."""

import fcntl
import os
import stat
from contextlib import suppress
from pathlib import Path

from knobscope.errors import UserError

__all__ = ["hold_directory", "make_directory"]

_MODE = 0o711  # as root, servers run as another user and must get through


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
        fcntl.flock(descriptor, fcntl.LOCK_EX if exclusive else fcntl.LOCK_SH)
        if directory.is_dir() and os.path.samestat(os.fstat(descriptor), directory.lstat()):
            return descriptor
        os.close(descriptor)


def make_directory(device: str, directory: Path) -> None:
    """Make a directory that others can only pass through, or find it made.

    Raises UserError for one that somebody else controls: what we and our servers write there could be led elsewhere.
    """
    try:
        directory.mkdir(mode=_MODE)
        with suppress(FileNotFoundError):  # another process of ours found it empty
            directory.chmod(_MODE)  # whatever the umask
    except FileExistsError:
        _require_ours(device, directory)
    except OSError as error:
        raise UserError(
            f"device {device}: cannot write to {directory.parent} ({error.strerror}); "
            "give this user the right to, or name another directory"
        ) from error


def _require_ours(device: str, directory: Path) -> None:
    status = directory.lstat()
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
