"""Opens what traces are packed in: gzip, xz or zstd, told by their first bytes, and standard input."""

import gzip
import lzma
import sys
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import IO, cast

from knobscope.errors import UserError

CHUNK = 1 << 18
#: First bytes -> how the file is packed.
_PACKED = {b"\x1f\x8b": "gzip", b"\xfd7zXZ\x00": "xz", b"\x28\xb5\x2f\xfd": "zstd"}
#: Standard input, and what a shell writes for `<(command)`.
_STREAMS = ("-", "/dev/stdin", "/dev/fd/", "/proc/self/fd/")
#: Bytes from a stream, which are kept in a file.
_MOST_STREAMED = 1 << 32


def is_stream(path: Path) -> bool:
    """Whether a path means standard input or a pipe that the shell opened."""
    return str(path) == "-" or str(path).startswith(_STREAMS[1:])


def save_stream(path: Path, folder: Path) -> Path:
    """Return a file in `folder` that holds all that a stream has. UserError: that is too much."""
    saved, total = folder / "stream", 0
    with sys.stdin.buffer if str(path) == "-" else path.open("rb") as source, saved.open("wb") as file:
        while chunk := source.read(CHUNK):
            total += len(chunk)
            if total > _MOST_STREAMED:
                raise UserError(f"{path}: more than {_MOST_STREAMED:,} bytes; expected a file for that many")
            file.write(chunk)
    return saved


def is_packed(path: Path) -> str:
    """Return how a file is packed; an empty text if it is not."""
    with path.open("rb") as file:
        head = file.read(8)
    return next((kind for start, kind in _PACKED.items() if head.startswith(start)), "")


def open_packed(path: Path) -> IO[bytes]:
    """Open what a file holds once it is unpacked."""
    match is_packed(path):
        case "gzip":
            return cast(IO[bytes], gzip.open(path))
        case "xz":
            return lzma.open(path)
        case "zstd":
            import zstandard

            return cast(IO[bytes], zstandard.open(path))
    return path.open("rb")


def read_chunks(path: Path) -> Iterator[bytes]:
    """Yield the content of a file, unpacked. UserError: it is damaged."""
    import zstandard

    try:
        with open_packed(path) as file:
            while chunk := file.read(CHUNK):
                yield chunk
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError, zstandard.ZstdError) as error:
        kind = is_packed(path)
        raise UserError(f"{path}: the compressed text is damaged ({error}); expected a whole file of {kind}") from error
