"""Tables of what the device saw in a run."""

__all__ = ["BLOCK_LAYER_TABLES"]

BLOCK_LAYER_TABLES: dict[str, dict[str, str]] = {
    "io_profile": {
        "run_id": "VARCHAR",
        "op": "VARCHAR",  # read | write | discard | flush
        "requests": "BIGINT",
        "bytes": "BIGINT",
        "aligned_requests": "BIGINT",
        "aligned_share": "DOUBLE",
        "sequential_requests": "BIGINT",
        "sequential_share": "DOUBLE",
        "fua": "BIGINT",
        "preflush": "BIGINT",
        "sync": "BIGINT",
        "meta": "BIGINT",
        "merges": "BIGINT",  # bios that became part of a request under way
        "splits": "BIGINT",  # bios that were too large for one request
        "own_requests": "BIGINT",
        "own_bytes": "BIGINT",
        "inode_requests": "BIGINT",
        "inode_bytes": "BIGINT",
        "journal_requests": "BIGINT",
        "journal_bytes": "BIGINT",
        "flush_requests": "BIGINT",
        "flush_bytes": "BIGINT",
        "foreign_requests": "BIGINT",
        "foreign_bytes": "BIGINT",
        "device_requests": "BIGINT",  # all that the device saw, whoever asked
        "device_bytes": "BIGINT",
    },
    "io_sizes": {"run_id": "VARCHAR", "op": "VARCHAR", "bytes": "BIGINT", "requests": "BIGINT"},
    # Queue -1 is the whole device; depth 0 is idle time.
    "queue_depth": {"run_id": "VARCHAR", "queue": "INTEGER", "depth": "INTEGER", "time_ns": "BIGINT"},
    "io_latency": {
        "run_id": "VARCHAR",
        "op": "VARCHAR",
        "low_us": "DOUBLE",
        "high_us": "DOUBLE",
        "requests": "BIGINT",
    },
    "io_series": {
        "run_id": "VARCHAR",
        "t_s": "DOUBLE",
        "op": "VARCHAR",
        "requests": "BIGINT",
        "bytes": "BIGINT",
        "depth": "DOUBLE",
        "latency_mean_us": "DOUBLE",
    },
    # All requests of a run by file, flushes apart; what belongs to no file is `journal`, `metadata` or `unknown`.
    "files": {
        "run_id": "VARCHAR",
        "file": "VARCHAR",  # path below the data directory, or the last part of it where no more is known
        "role": "VARCHAR",  # data | log | temp | other | journal | metadata | unknown
        "table_name": "VARCHAR",  # NULL where a file holds no table, or several
        "device": "VARCHAR",  # MAJ:MIN of the file system
        "inode": "UBIGINT",
        "op": "VARCHAR",
        "requests": "BIGINT",
        "bytes": "BIGINT",
        "address_requests": "BIGINT",  # of these, found by their address: their order is not known, nor in what follows
        "sequential_requests": "BIGINT",
        "sequential_share": "DOUBLE",
        "strided_share": "DOUBLE",
        "random_share": "DOUBLE",
        "pattern": "VARCHAR",  # sequential | strided | random | mixed | few (to say); NULL: not known
    },
    # Who submitted the requests, by thread name: the DBMS's own threads, writeback, the file system's journal.
    "submitters": {
        "run_id": "VARCHAR",
        "submitter": "VARCHAR",
        "op": "VARCHAR",
        "requests": "BIGINT",
        "bytes": "BIGINT",
    },
}
