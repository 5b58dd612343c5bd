"""Signs that something outside ended a process or kept it from its work: signals of others, errors of the system."""

import os
import re
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path

#: With less on the file system of its data no DBMS works as it should, and with less for temporary files no generator
#: writes all of its log: most of them do not notice.
_LEAST_FREE_BYTES = 16 << 20

#: Signals that somebody sends; those that a program raises by its own fault (SEGV, ABRT, ...) are its own.
_SENT = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGQUIT)
#: What the C library says of ENOSPC, EDQUOT, EIO, EROFS and EADDRINUSE, and SQLite of the first and third.
_ERRORS = re.compile(
    r"no space left on device|disk quota exceeded|input/output error|read-only file system|address already in use"
    r"|database or disk is full|disk i/o error",
    re.IGNORECASE,
)


def find_sent_signal(code: int | None) -> str | None:
    """Return the name of the signal that an exit code tells of, None when nobody sent one.

    The code is that of `supervise`: 128 + signal, or minus signal when its keeper was killed.
    """
    return next((sent.name for sent in _SENT if code in (128 + sent, -sent)), None)


def find_system_error(text: str) -> str | None:
    """Return the first words of a log that tell of a full disk, failed I/O or a port in use; None without any."""
    match = _ERRORS.search(text)
    return None if match is None else match.group().lower()


def find_full(directories: Mapping[str, Sequence[Path]]) -> str | None:
    """Return which file system, by the name of what is on it, has hardly any space left; None while all have some."""
    for name, paths in directories.items():
        for path in paths:
            space = os.statvfs(path)
            free = space.f_bavail * space.f_frsize
            if free < _LEAST_FREE_BYTES:
                return f"the file system of {name} has {free >> 20} MiB free"
    return None
