"""Files between us and the user that servers run as: we write only where that user cannot and follow none of its links.

Whoever may write to a directory may replace a file in it by a link at any moment; a write or chown by path would then
hit what the link names. So directories in which we write are ours, and the user reads them through its group; what the
user writes lies in directories of its own, from which we only read, by descriptor.
"""

import contextlib
import os
import pwd
import shutil
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import TextIO

_FLAGS = os.O_NOFOLLOW | os.O_CLOEXEC
#: Files and output that are kept whole in memory are refused beyond this.
MOST_BYTES = 64 << 20


class UnsafeFileError(OSError):
    """A file is not what it should be: a link, a pipe, or somebody else's."""


def make_shared_directory(path: Path, user: str | None) -> None:
    """Make a directory of ours that only we write to and that, apart from us, only `user` reads."""
    path.mkdir(mode=0o700)
    share_directory(path, user)


def share_directory(path: Path, user: str | None) -> None:
    """Let `user`, and nobody else, read and pass a directory of ours."""
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    try:
        os.fchmod(directory, 0o700 if user is None else 0o750)
        if user is not None:
            os.fchown(directory, -1, pwd.getpwnam(user).pw_gid)
    finally:
        os.close(directory)


def make_own_directory(path: Path, user: str | None) -> None:
    """Make a directory that belongs to `user` alone (None: to us), in one that only we write to."""
    _require_own(path.parent)
    path.mkdir(mode=0o700)
    hand_over(path, user)


def hand_over(path: Path, user: str | None) -> None:
    """Give a directory that we made, in one that only we write to, and the files directly in it to `user` alone."""
    if user is None:
        return
    account = pwd.getpwnam(user)
    directory = os.open(path, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    try:
        for made in path.iterdir():  # closed to the user until the end
            file = os.open(made.name, os.O_RDONLY | _FLAGS, dir_fd=directory)
            os.fchown(file, account.pw_uid, account.pw_gid)
            os.close(file)
        os.fchown(directory, account.pw_uid, account.pw_gid)
    finally:
        os.close(directory)


def remove_shared(path: Path) -> None:
    """Remove a directory of ours with all directories that others write to in it, also while they do."""
    for _, _, _, folder in os.fwalk(path):
        if os.fstat(folder).st_uid != os.geteuid():
            os.fchown(folder, os.geteuid(), os.getegid())
            os.fchmod(folder, 0o700)
    shutil.rmtree(path)


def share_files(path: Path, user: str | None) -> None:
    """Let `user`, and nobody else, read a directory that we made and the files directly in it."""
    for file in path.iterdir():
        file.chmod(0o644)  # the directory is closed to everybody else
    share_directory(path, user)


def write_shared(path: Path, text: str, user: str | None, *, durable: bool = False) -> Path:
    """Write a file anew, in a directory of ours, that apart from us only `user` reads; return its path.

    With `durable` it is on the device afterwards; its name is once the directory is synchronised, too.
    """
    _require_own(path.parent)
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | _FLAGS)
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(path.name, dir_fd=directory)
        file = os.open(path.name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _FLAGS, 0o600, dir_fd=directory)
    finally:
        os.close(directory)
    with os.fdopen(file, "w", encoding="utf-8") as stream:
        if user is not None:
            os.fchown(file, -1, pwd.getpwnam(user).pw_gid)
            os.fchmod(file, 0o640)
        stream.write(text)
        if durable:
            stream.flush()
            os.fsync(file)
    return path


@contextlib.contextmanager
def open_foreign(path: Path) -> Iterator[TextIO]:
    """Yield a regular file that the owner of its directory wrote, open for reading as text.

    Raises UnsafeFileError for a link, a pipe or a file of somebody else, and FileNotFoundError when there is none.
    """
    try:
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
    except FileNotFoundError:
        raise
    except OSError as error:
        raise UnsafeFileError(f"{path} is no plain file ({error.strerror})") from error
    with os.fdopen(file, encoding="utf-8", errors="replace") as stream:
        status = os.fstat(file)
        if not stat.S_ISREG(status.st_mode) or status.st_uid not in (path.parent.lstat().st_uid, os.geteuid()):
            raise UnsafeFileError(f"{path} is no plain file of the owner of its directory")
        yield stream


def read_foreign(path: Path) -> str:
    """Return the text of such a file. Errors as of open_foreign, and UnsafeFileError for one that is too large."""
    with open_foreign(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        if size > MOST_BYTES:
            raise UnsafeFileError(f"{path.name} has {size >> 20} MiB, more than the limit of {MOST_BYTES >> 20} MiB")
        return stream.read(MOST_BYTES)


def _require_own(directory: Path) -> None:
    """Raise UnsafeFileError when somebody else may write to a directory."""
    status = directory.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or status.st_mode & 0o022:
        raise UnsafeFileError(f"{directory} is no directory that only user {os.geteuid()} writes to")
