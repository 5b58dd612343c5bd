"""Takes records of single requests out of the kernel's ring buffer, many at a time and without a call per record.

The ring is memory that kernel and reader share (https://docs.kernel.org/bpf/ringbuf.html): a page with the reader's
position, a page with the writer's, and the data, mapped twice in a row so that no record is ever cut in two. A record
is a header of eight bytes and its content; all of ours have the same size, so their headers lie at equal distances.
"""

from __future__ import annotations

import mmap
import struct
import time
from dataclasses import replace

from counters import Counters
from file_of import BYTES_DONE
from kernel import Kernel, Member, Needs, read_kernel

_RECORD_BYTES = 8 + 88  # header and content of one record: struct note_t of counters.bpf.h
_PAGES = 4096  # of the ring, a power of two: 16 MiB hold 170,000 records
_REST_S = 0.1
_BUSY = 1 << 31  # in the header's first word: the kernel still writes it
_MEMBERS = (
    Member("inode", "i_sb", 8),
    Member("super_block", "s_dev", 4),
    Member("folio", "mapping", 8, since="5.16"),
    Member("folio", "index", 8, since="5.16"),
    *BYTES_DONE,
    Member("bio_vec", "bv_offset", 4),
)


def read_traced_kernel(needs: Needs) -> Kernel:
    """Read the kernel for a program that sends records too; it is compiled with the macro TRACE."""
    kernel = read_kernel(replace(needs, members=(*needs.members, *_MEMBERS), sizes=(*needs.sizes, "page")))
    macros = {"TRACE": 1, "TRACE_PAGES": _PAGES, "PAGE_SIZE": mmap.PAGESIZE}
    lines = (f"#undef {name}\n#define {name} {value}\n" for name, value in macros.items())
    return replace(kernel, prelude=kernel.prelude + "".join(lines))


class EventTrace:
    """Records of one run at a time, from `start` to `take_rest`."""

    def __init__(self, counters: Counters) -> None:
        self._counters = counters
        self._ring = EventRing(counters["trace_events"].map_fd)
        self._lost = 0

    def start(self) -> None:
        """Forget what is left of the run before."""
        self._ring.drain()
        self._lost = self._count_lost()

    def take(self) -> tuple[bytes, int]:
        """Return the records since the last call, and how many found no room."""
        records, before = self._ring.drain(), self._lost
        self._lost = self._count_lost()
        return records, self._lost - before

    def take_rest(self) -> tuple[bytes, int]:
        """Do the same when the run is over: wait for what is being written just now."""
        records, lost = self.take()
        deadline = time.monotonic() + _REST_S
        while not self._ring.is_empty() and time.monotonic() < deadline:
            records += self._ring.drain()
        return records, lost

    def close(self) -> None:
        """Unmap the ring."""
        self._ring.close()

    def _count_lost(self) -> int:
        return sum(self._counters.get("trace_lost", 0))


class EventRing:
    """The reader's side of a ring buffer map."""

    def __init__(self, handle: int) -> None:
        page = mmap.PAGESIZE
        self._size = _PAGES * page
        self._reader = mmap.mmap(handle, page, flags=mmap.MAP_SHARED)
        self._ring = mmap.mmap(handle, page + 2 * self._size, mmap.MAP_SHARED, mmap.PROT_READ, offset=page)

    def drain(self) -> bytes:
        """Return all whole records with their headers, and make room for new ones."""
        begin, end = self._get_position(self._reader), self._get_position(self._ring)
        start = mmap.PAGESIZE + begin % self._size
        with memoryview(self._ring) as whole, whole[start : start + end - begin] as part:
            length = _find_whole(part)
            records = bytes(part[:length])
        struct.pack_into("=Q", self._reader, 0, begin + length)
        return records

    def is_empty(self) -> bool:
        """Whether every record was taken out; what the kernel still writes counts as there."""
        return self._get_position(self._reader) == self._get_position(self._ring)

    def close(self) -> None:
        """Unmap the memory."""
        self._reader.close()
        self._ring.close()

    @staticmethod
    def _get_position(memory: mmap.mmap) -> int:
        return int(struct.unpack_from("=Q", memory)[0])


def _find_whole(part: memoryview) -> int:
    """Return how many bytes from the begin on are records that the kernel has finished."""
    with part.cast("I") as words, words[:: _RECORD_BYTES // 4] as headers:
        if max(headers, default=0) < _BUSY:
            return len(part)
        return next(index for index, header in enumerate(headers) if header >= _BUSY) * _RECORD_BYTES
