"""Bounds the memory of this process while it does what a stranger wrote: a template, a query."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager

#: Field of /proc/self/statm with the pages that RLIMIT_DATA counts, and those of the stack.
_DATA = 5


@contextmanager
def limit_memory(more: int) -> Iterator[None]:
    """Let this process have as many bytes more than it has now; further ones are refused.

    Memory that it may write to counts, and not what is merely reserved, as for the heap of each thread.
    """
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limits = (_data_bytes() + more, soft, hard)
    least = min(limit for limit in limits if limit != resource.RLIM_INFINITY)
    resource.setrlimit(resource.RLIMIT_DATA, (least, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_DATA, (soft, hard))


def _data_bytes() -> int:
    """Return the bytes that count already; they are asked for with every sentence, and no `Path` is as fast."""
    file = os.open("/proc/self/statm", os.O_RDONLY)
    try:
        return int(os.read(file, 64).split()[_DATA]) * resource.getpagesize()
    finally:
        os.close(file)
