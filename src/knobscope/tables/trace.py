"""Tables of a trace of single requests."""

__all__ = ["TRACE_TABLES"]

#: In a directory of their own per run; no part of a study's database.
TRACE_TABLES: dict[str, dict[str, str]] = {
    # One row per request that was issued and completed in the run, in order of issue.
    "events": {
        "ts_ns": "BIGINT",  # of issue, from the begin of the run
        "lba": "BIGINT",  # first sector of 512 bytes, on the whole disk
        "bytes": "BIGINT",
        "op": "VARCHAR",  # read | write | discard | flush
        "file": "VARCHAR",  # NULL: not known, or none
        "offset": "BIGINT",  # in the file, bytes
        "lat_ns": "BIGINT",  # from issue to completion; NULL: the kernel showed no completion
        "wait_ns": "BIGINT",  # from the making of the request to its issue
        "queue": "INTEGER",  # hardware queue
        "owner": "VARCHAR",  # own | inode | journal | flush | foreign | unknown | unseen
        "pid": "INTEGER",  # process that submitted it; NULL for a flush, which nobody submits
        "comm": "VARCHAR",  # its name
        "fua": "BOOLEAN",
        "preflush": "BOOLEAN",
        "sync": "BOOLEAN",
        "meta": "BOOLEAN",
        "failed": "BOOLEAN",
        "device": "VARCHAR",  # MAJ:MIN of the file system
        "inode": "UBIGINT",
    },
    # One row per time that events were taken out of the kernel's buffer, about ten a second.
    "lost": {
        "ts_ns": "BIGINT",  # when, from the begin of the run; the last one is its end
        "recorded": "BIGINT",  # events since the row before
        "lost": "BIGINT",  # of which there is no event: the buffer was full, or the trace had its full length
    },
}
