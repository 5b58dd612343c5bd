"""Tables of what the DBMS asked of its files: system calls and page faults."""

from typing import Annotated

from knobscope.tables.block_layer import OrderColumns
from knobscope.tables.declaring import Count, Real, RunColumns, Text, Unsigned


class FileAccessRow(RunColumns, OrderColumns, total=False):
    """What a run asked of each file in system calls; `files` has what of it reached the device, in the same words.

    With `watch: [syscalls]`.
    """

    file: Annotated[Text, "As in `files`."]
    role: Annotated[Text, "As in `files`."]
    table_name: Annotated[Text | None, "Table in the file; NULL where it holds none, or several."]
    device: Annotated[Text | None, "File system, as MAJ:MIN."]
    inode: Annotated[Unsigned | None, "Inode of the file."]
    op: Annotated[Text, "`read` or `write`."]
    calls: Annotated[Count, "System calls."]
    bytes: Annotated[Count, "Bytes that they moved."]


class SyscallRow(RunColumns, total=False):
    """System calls of a run that read, write, sync or map files or make threads; with `watch: [syscalls]`."""

    syscall: Annotated[Text, "Name of the call."]
    calls: Annotated[Count, "Calls."]
    errors: Annotated[Count, "Calls that returned an error."]
    bytes: Annotated[Count | None, "Bytes that were moved, or named (mmap, madvise, ...); NULL where a call has none."]
    latency_mean_us: Annotated[Real | None, "Mean time from entry to return."]


class IoModeRow(RunColumns, total=False):
    """In which way a run read, wrote and synced its files; with `watch: [syscalls]`."""

    op: Annotated[Text, "`read`, `write` or `sync`."]
    mode: Annotated[Text, "`sync`, `libaio`, `io_uring` or `mmap`."]
    calls: Annotated[Count, "Requests of the program; for `mmap` faults that read the file, or pages dirtied."]
    bytes: Annotated[Count | None, "Bytes of these."]
    call_share: Annotated[Real | None, "Share of all requests of the same operation."]
    byte_share: Annotated[Real | None, "Share of all bytes of the same operation."]
    errors: Annotated[Count | None, "Requests that failed."]
    submits: Annotated[Count | None, "System calls that carried the requests."]
    batch_mean: Annotated[Real | None, "Requests per such call, on average."]
    in_flight_mean: Annotated[Real | None, "Requests under way while there is any, on average."]
    latency_mean_us: Annotated[Real | None, "Mean time of a request."]
    polled: Annotated[Count | None, "Requests that a kernel thread took over without a call."]
    unseen_completions: Annotated[Count | None, "Requests whose end the program saw without a call."]


class FaultRow(RunColumns, OrderColumns, total=False):
    """Page faults on mapped files; NULL is what the kernel does not show. With `watch: [faults]`."""

    file: Annotated[Text, "As in `files`."]
    role: Annotated[Text, "As in `files`."]
    table_name: Annotated[Text | None, "Table in the file; NULL where it holds none, or several."]
    device: Annotated[Text | None, "File system, as MAJ:MIN."]
    inode: Annotated[Unsigned | None, "Inode of the file."]
    faults: Annotated[Count | None, "Page faults."]
    pages_in: Annotated[
        Count | None, "Pages of 4 KiB that they added to the page cache, with those that were read ahead."
    ]
    bytes_in: Annotated[Count | None, "Bytes of these pages."]
    pages_dirtied: Annotated[Count | None, "Pages that were clean before and were written to."]
    pages_written_back: Annotated[Count | None, "Pages of these files that were written back, however dirtied."]


CALLS_TABLES: dict[str, type] = {
    "file_access": FileAccessRow,
    "syscalls": SyscallRow,
    "io_modes": IoModeRow,
    "faults": FaultRow,
}
