"""Reads the logs of programs, which may have become as long as a disk allows."""

import os
from pathlib import Path

_TAIL_LINES = 40  # programs in Go name the flag that they do not know above all of those that they do
_TAIL_BYTES = 1 << 16
_END_BYTES = 1 << 20


def read_log(path: Path) -> str:
    """Return a log, or nothing when it was never written; of a long one its first and its last MiB."""
    if not path.exists():
        return ""
    with path.open("rb") as log:
        text = log.read(_END_BYTES)
        size = os.fstat(log.fileno()).st_size
        if size > 2 * _END_BYTES:
            text += b"\n[...]\n"
            log.seek(size - _END_BYTES)
        return (text + log.read(_END_BYTES)).decode(errors="replace")


def read_tail(path: Path, lines: int = _TAIL_LINES) -> str:
    """Return the last lines of a log, of its last 64 KiB; nothing when it was never written."""
    if not path.exists():
        return ""
    with path.open("rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
        return "\n".join(log.read(_TAIL_BYTES).decode(errors="replace").splitlines()[-lines:])
