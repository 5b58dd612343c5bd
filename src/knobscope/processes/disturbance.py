"""Signs that something outside ended a process or kept it from its work: signals of others, errors of the system."""

import re
import signal

__all__ = ["find_sent_signal", "find_system_error"]

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
    found = _ERRORS.search(text)
    return None if found is None else found.group().lower()
