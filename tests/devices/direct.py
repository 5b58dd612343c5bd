"""Direct I/O from Python, timed: one request at a time."""

import mmap
import os
import random
import time
from collections.abc import Generator
from contextlib import closing
from itertools import islice
from pathlib import Path

#: Seconds; the file is open until it is closed.
Latencies = Generator[float, None, None]


def make_file(directory: Path, size: int = 32 << 20) -> Path:
    """Return a file whose blocks exist and are written, so that later writes change no metadata."""
    file = directory / "data"
    with file.open("wb") as handle:
        handle.write(os.urandom(size))
        handle.flush()
        os.fsync(handle.fileno())
    return file


def find_shortest(latencies: Latencies, until: float) -> float:
    """Return the shortest of 20 latencies, and of more as long as all are longer than `until`, at most of 1000.

    Other work on the machine makes a request take longer, never shorter: on a busy one, the right answer takes more
    requests, and a device that answers too early or too late is still found out.
    """
    with closing(latencies):
        shortest = min(islice(latencies, 20))
        for latency in islice(latencies, 980):
            if shortest <= until:
                break
            shortest = min(shortest, latency)
    return shortest


def _time(file: Path, length: int, *, write: bool, flush: bool) -> Latencies:
    """Yield the latencies of requests at random aligned offsets, in seconds."""
    buffer = mmap.mmap(-1, length)
    blocks = file.stat().st_size // length
    draw = random.Random(1)
    descriptor = os.open(file, os.O_RDWR | os.O_DIRECT)
    try:
        while True:
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
            yield time.perf_counter() - start
    finally:
        os.close(descriptor)


def time_reads(file: Path) -> Latencies:
    """Yield the latencies of reads, without end."""
    return _time(file, 4096, write=False, flush=False)


def time_writes(file: Path) -> Latencies:
    """Yield the latencies of writes, without end."""
    return _time(file, 4096, write=True, flush=False)


def time_flushes(file: Path, length: int = 4096) -> Latencies:
    """Yield the latencies of the fdatasync after each write, without end."""
    return _time(file, length, write=True, flush=True)
