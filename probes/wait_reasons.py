"""Why a thread slept: from its system call, the request whose end woke it, and the kernel's stack."""

from __future__ import annotations

import bisect
from collections.abc import Sequence
from functools import cached_property
from pathlib import Path

_KALLSYMS = Path("/proc/kallsyms")
_TEXT = frozenset(b"tTwW")
#: Functions that let any thread sleep, whatever for.
_SLEEPING = frozenset(
    ("__schedule", "schedule", "io_schedule", "schedule_timeout", "io_schedule_timeout", "schedule_preempt_disabled")
)
_REQUESTS = (None, "read", "write", "flush")  # operation + 1 of the request that ended the wait

#: Functions on the stack -> reason; the first that fits counts, whatever request ended the wait.
_CERTAIN: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("rwsem_down_read_slowpath", "rwsem_down_write_slowpath", "__mutex_lock", "__down_common")), "lock"),
    (frozenset(("blkdev_issue_flush", "xlog_wait_on_iclog", "xfs_log_force", "xfs_log_force_seq")), "flush"),
    (frozenset(("folio_wait_writeback", "wait_on_page_writeback", "balance_dirty_pages")), "write"),
    (frozenset(("do_swap_page", "shmem_swapin_folio")), "swap"),
    (frozenset(("filemap_fault", "exc_page_fault", "do_user_addr_fault", "do_mem_abort")), "fault"),
)
#: The same, where no request was seen to end it.
_LIKELY: tuple[tuple[frozenset[str], str], ...] = (
    (frozenset(("filemap_get_pages", "filemap_read", "generic_file_buffered_read")), "read"),
    (frozenset(("__bread_gfp", "ext4_read_bh", "ext4_bread", "xfs_buf_read_map", "read_extent_buffer_pages")), "read"),
    (frozenset(("start_this_handle", "wait_for_commit", "kjournald2")), "journal"),
    (frozenset(("pipe_read", "anon_pipe_read", "pipe_write", "anon_pipe_write", "eventfd_read")), "network"),
    (frozenset(("sk_wait_data", "inet_csk_accept", "unix_stream_read_generic", "sk_stream_wait_memory")), "network"),
    (frozenset(("do_wait", "sigsuspend", "do_poll", "ep_poll", "do_select")), "network"),
    (frozenset(("hrtimer_nanosleep", "do_nanosleep")), "timer"),
    (frozenset(("io_cqring_wait", "read_events")), "async"),
    (frozenset(("futex_do_wait", "futex_wait_queue", "futex_wait_queue_me", "do_semtimedop")), "lock"),
)
_JOURNALS = ("jbd2_", "xlog_", "xfs_log_", "xfs_trans_", "btrfs_")  # how functions of a journal begin
#: Waits for I/O that nothing else describes.
_BY_CALL = dict.fromkeys(("read", "pread64", "readv", "preadv", "preadv2", "sendfile", "copy_file_range"), "read")
_BY_CALL |= dict.fromkeys(("write", "pwrite64", "writev", "pwritev", "pwritev2", "fallocate", "ftruncate"), "write")
_BY_CALL |= dict.fromkeys(("fsync", "fdatasync", "sync_file_range", "syncfs", "sync", "msync"), "write")
_BY_KIND = ("other", "lock", "network", "timer", "async", "other")  # as the enum of kinds in the program


class Symbols:
    """The kernel's functions by address, read when they are first asked for."""

    @cached_property
    def _lines(self) -> list[bytes]:
        """In the order of their addresses, which all have 16 digits: to parse each of 120,000 would take 0.3 s."""
        return sorted(_KALLSYMS.read_bytes().splitlines())

    def name_stack(self, addresses: Sequence[int]) -> tuple[str, ...]:
        """Return the functions of a stack, innermost first, without those that let a thread sleep."""
        stack = [self._name(address) for address in addresses]
        slept = [index for index, name in enumerate(stack) if name in _SLEEPING]
        return tuple(stack[slept[-1] + 1 if slept else 0 :])

    def _name(self, address: int) -> str:
        """Return the function that begins last before an address; of several names of it the last one."""
        start, name = b"", b"?"
        for index in range(bisect.bisect(self._lines, b"%016x\xff" % address) - 1, -1, -1):
            begin, kind, symbol = self._lines[index].split(None, 3)[:3]
            if start and begin != start:
                break
            if kind[0] in _TEXT:
                start, name = begin, max(name, symbol) if start else symbol
        return name.split(b".", 1)[0].decode()


def name_reason(kind: int, call: str | None, stack: Sequence[str], *, is_io: bool, request: int) -> str:
    """Return why a thread slept.

    `kind`: of the system call, as the program's enum; `request`: operation + 1 of the request that ended the wait, 0
    when none did.
    """
    if kind and not (_BY_KIND[kind] == "async" and request):
        return _BY_KIND[kind]
    functions = frozenset(stack)
    if certain := next((reason for names, reason in _CERTAIN if functions & names), None):
        return certain
    if ended_by := _REQUESTS[request]:
        return ended_by
    likely = next((reason for names, reason in _LIKELY if functions & names), None)
    if not likely and any(name.startswith(_JOURNALS) for name in stack):
        likely = "journal"
    if not likely and is_io and call:
        likely = _BY_CALL.get(call)
    return likely or "other"
