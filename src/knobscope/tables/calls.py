"""Tables of what the DBMS asked of its files: system calls and page faults."""

__all__ = ["CALLS_TABLES"]

CALLS_TABLES: dict[str, dict[str, str]] = {
    # What the DBMS asked of its files, in system calls; `files` has what of it reached the device, in the same words.
    "file_access": {
        "run_id": "VARCHAR",
        "file": "VARCHAR",
        "role": "VARCHAR",
        "table_name": "VARCHAR",
        "device": "VARCHAR",
        "inode": "UBIGINT",
        "op": "VARCHAR",  # read | write
        "calls": "BIGINT",
        "bytes": "BIGINT",
        "sequential_share": "DOUBLE",
        "strided_share": "DOUBLE",
        "random_share": "DOUBLE",
        "pattern": "VARCHAR",
    },
    # System calls of the DBMS that read, write, sync or map files or make threads; with `watch: [syscalls]`.
    "syscalls": {
        "run_id": "VARCHAR",
        "syscall": "VARCHAR",
        "calls": "BIGINT",
        "errors": "BIGINT",
        "bytes": "BIGINT",  # moved, or named (mmap, madvise, ...); NULL where a call has none
        "latency_mean_us": "DOUBLE",
    },
    # In which way the DBMS reads, writes and syncs its files.
    "io_modes": {
        "run_id": "VARCHAR",
        "op": "VARCHAR",  # read | write | sync
        "mode": "VARCHAR",  # sync | libaio | io_uring | mmap
        "calls": "BIGINT",  # requests of the program; mmap: faults that read the file, or pages dirtied
        "bytes": "BIGINT",
        "call_share": "DOUBLE",  # of all of the same op
        "byte_share": "DOUBLE",
        "errors": "BIGINT",
        "submits": "BIGINT",  # system calls that carried them
        "batch_mean": "DOUBLE",  # requests per such call
        "in_flight_mean": "DOUBLE",  # while there is any
        "latency_mean_us": "DOUBLE",
        "polled": "BIGINT",  # taken over by a kernel thread, without a call
        "unseen_completions": "BIGINT",  # reaped without a call
    },
    # Page faults on mapped files; NULL is what the kernel does not show. With `watch: [faults]`.
    "faults": {
        "run_id": "VARCHAR",
        "file": "VARCHAR",
        "role": "VARCHAR",
        "table_name": "VARCHAR",
        "device": "VARCHAR",
        "inode": "UBIGINT",
        "faults": "BIGINT",
        "pages_in": "BIGINT",  # of 4 KiB, added to the page cache by them, with those read ahead
        "bytes_in": "BIGINT",
        "pages_dirtied": "BIGINT",  # clean before
        "pages_written_back": "BIGINT",  # of these files, however they were dirtied
        "sequential_share": "DOUBLE",
        "strided_share": "DOUBLE",
        "random_share": "DOUBLE",
        "pattern": "VARCHAR",
    },
}
