"""Direct I/O from Python, timed: one request at a time."""

import mmap
import os
import random
import statistics
import time
from pathlib import Path

__all__ = ["make_file", "time_flushed_writes", "time_reads", "time_writes"]


def make_file(directory: Path, size: int = 32 << 20) -> Path:
    """Return a file whose blocks exist and are written, so that later writes change no metadata."""
    file = directory / "data"
    with file.open("wb") as handle:
        handle.write(os.urandom(size))
        handle.flush()
        os.fsync(handle.fileno())
    return file


def _time(file: Path, count: int, length: int, *, write: bool, flush: bool) -> float:
    """Return the median of some requests at random aligned offsets, in seconds."""
    buffer = mmap.mmap(-1, length)
    blocks = file.stat().st_size // length
    draw = random.Random(1)
    times = []
    descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
    try:
        for _ in range(count):
            offset = draw.randrange(blocks) * length
            if write and flush:
                os.pwritev(descriptor, [buffer], offset)
            start = time.perf_counter()
            if flush:
                os.fdatasync(descriptor)
            elif write:
                os.pwritev(descriptor, [buffer], offset)
            else:
                os.preadv(descriptor, [buffer], offset)
            times.append(time.perf_counter() - start)
    finally:
        os.close(descriptor)
    return statistics.median(times)


def time_reads(file: Path, count: int = 50, length: int = 4096) -> float:
    """Return the median latency of reads."""
    return _time(file, count, length, write=False, flush=False)


def time_writes(file: Path, count: int = 50, length: int = 4096) -> float:
    """Return the median latency of writes."""
    return _time(file, count, length, write=True, flush=False)


def time_flushed_writes(file: Path, count: int = 50, length: int = 4096) -> float:
    """Return the median latency of the fdatasync after each write."""
    return _time(file, count, length, write=True, flush=True)
