"""Directories that live as long as a process: whoever finds one can tell whether its owner lives.

The number of a process does not tell: it is another process' by now, or it belongs to another PID namespace and cannot
be seen. A lock on the directory does: it ends with the process that holds it, and all namespaces see it.
"""

import fcntl
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def open_temporary(prefix: str, parent: Path | None = None) -> Iterator[Path]:
    """Yield a new directory of ours alone, in `parent` or where temporary files belong; it is removed at the end.

    What killed processes left under the same prefix is removed first.
    """
    parent = parent or Path(tempfile.gettempdir())
    for leftover in parent.glob(f"{prefix}*"):
        remove_if_abandoned(leftover, _remove_tree)
    while True:
        path = Path(tempfile.mkdtemp(prefix=prefix, dir=parent))
        try:
            holding = hold_directory(path)
        except FileNotFoundError:
            continue
        break
    try:
        yield path
    finally:
        try:
            _remove_tree(path)
        finally:
            os.close(holding)


def _remove_tree(path: Path) -> None:
    """Remove a directory of ours with all that programs left in it, also below directories that they closed.

    Root needs no permission to enter these, and must change nothing by a name that a server's user may replace.
    """
    if os.geteuid():
        for root, folders, _ in os.walk(path):
            for folder in map(Path(root).joinpath, folders):
                if not folder.is_symlink():
                    folder.chmod(0o700)
    shutil.rmtree(path)


def hold_directory(path: Path) -> int:
    """Hold a directory; return a descriptor that does so until it is closed. FileNotFoundError: it was just removed."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    fcntl.flock(descriptor, fcntl.LOCK_SH)
    if not path.exists():  # somebody took it for abandoned before we held it
        os.close(descriptor)
        raise FileNotFoundError(path)
    return descriptor


def remove_if_abandoned(path: Path, remove: Callable[[Path], object]) -> None:
    """Remove a directory of ours that nobody holds any more; leave it when somebody else does so at this moment."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return  # gone, or not ours to look into
    try:
        if os.fstat(descriptor).st_uid == os.geteuid():
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            remove(path)
    except (BlockingIOError, FileNotFoundError):
        return
    finally:
        os.close(descriptor)
