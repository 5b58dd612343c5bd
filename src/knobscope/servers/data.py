"""Data directories: made for the user that servers run as, and copied by that user."""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from knobscope.durable_files import synchronise_filesystem
from knobscope.errors import UserError
from knobscope.processes import capture, find_service_user, make_own_directory, supervise

_COPY_S = 3600


def make_data_directory(path: Path) -> None:
    """Make an empty data directory for servers and clients, in a directory that only we write to."""
    make_own_directory(path, find_service_user())


def copy_data(source: Path, target: Path, *, cold: bool = False) -> None:
    """Copy a data directory block by block, and wait until it is on the device.

    XFS and btrfs could share the blocks of both (a reflink). But the first write to each block would then move it, with
    flushes of the journal, and the page cache would lack what a copy leaves there. Its owner copies it, so that root
    follows no link that a server left. With `cold` the page cache forgets the copy, file by file: the rest of the
    machine keeps its pages, nobody needs root. UserError: it cannot be copied.
    """
    make_data_directory(target)
    run_as_owner(["/bin/cp", "-a", "--reflink=never", f"{source}/.", str(target)], [source, target])
    settle_data(target, cold=cold)


def run_as_owner(command: Sequence[str], reach: Sequence[Path]) -> None:
    """Run a system program as the user whose data it is, who gets at these directories; UserError with its words."""
    process = supervise(
        list(command),
        user=find_service_user(),
        reach=list(reach),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        cwd="/",
    )
    try:
        code, _, errors = capture(process, _COPY_S)
    except subprocess.TimeoutExpired as error:
        raise UserError(f"`{' '.join(command)}` did not end within {_COPY_S} s") from error
    if code != 0:
        raise UserError(f"`{' '.join(command)}` failed: {errors.strip() or f'exit code {code}'}")


def settle_data(directory: Path, *, cold: bool) -> None:
    """Wait until what was written to a directory is on its device; with `cold` the page cache forgets it."""
    synchronise_filesystem(directory)
    if cold:
        _forget(directory)


def _forget(directory: Path) -> None:
    """Let the page cache forget all files; links are not followed, and pipes not waited for."""
    for _, _, names, folder in os.fwalk(directory):
        for name in names:
            try:
                file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=folder)
            except OSError:
                continue  # a link, a socket: nothing that has pages of its own
            os.posix_fadvise(file, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(file)
