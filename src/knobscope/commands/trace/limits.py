"""Limits of a trace, checked before anything keeps a line of it: memory is bounded, whatever the trace is."""

import stat
from itertools import islice
from pathlib import Path

from knobscope.commands.trace.unpacking import is_packed, read_chunks
from knobscope.errors import UserError

#: Bytes of a line; the longest of blkparse have a name of a program, those of CSV a path.
LONGEST_LINE = 1 << 16
#: Bytes that a compressed trace may become.
MOST_BYTES = 1 << 34
#: Requests take some 100 bytes of memory each.
MOST_REQUESTS = 12_000_000
#: Files take some kilobytes each, queues a pass over all requests.
MOST_FILES, MOST_QUEUES = 50_000, 1024
_CUT = "cut the trace into parts"


def require_regular(path: Path) -> None:
    """UserError for what is neither a regular file nor a directory: a pipe or device may have no end."""
    mode = path.stat().st_mode
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise UserError(f"{path}: found no regular file; expected a trace in a file, or -, standard input")


def require_few(path: Path, kind: str, count: int, most: int) -> None:
    """UserError for more requests, files or queues than fit into memory."""
    if count > most:
        raise UserError(f"{path}: found {count:,} {kind}; expected at most {most:,}: {_CUT}")


def check_text(path: Path, most_lines: int | None = None) -> None:
    """UserError at the first line that is too long or one too many, or when the whole text is too long.

    The text may be compressed. Nothing is read of one whose size says that it is too long.
    """
    lines = length = total = 0
    if not is_packed(path):
        _check_size(path, path.stat().st_size)
    for chunk in read_chunks(path):
        lengths = [len(line) for line in chunk.split(b"\n")]
        lengths[0] += length
        if max(lengths) > LONGEST_LINE:
            number = lines + 1 + next(index for index, size in enumerate(lengths) if size > LONGEST_LINE)
            raise UserError(f"{path}, line {number}: more than {LONGEST_LINE:,} bytes, the longest line of a trace")
        total += len(chunk)
        _check_size(path, total)
        length, lines = lengths[-1], lines + len(lengths) - 1
        if most_lines is not None and lines > most_lines:
            raise UserError(f"{path}: more than {most_lines:,} lines; expected at most that many: {_CUT}")


def _check_size(path: Path, size: int) -> None:
    if size > MOST_BYTES:
        raise UserError(f"{path}: more than {MOST_BYTES:,} bytes of text; expected at most that many: {_CUT}")


def read_first_lines(path: Path, count: int) -> list[str]:
    """Return the first lines of a text, compressed or not, as far as they may go."""
    start = next(read_chunks(path), b"").decode("utf-8-sig", "replace")
    return [line[:LONGEST_LINE] for line in islice(start.splitlines(), count)]
