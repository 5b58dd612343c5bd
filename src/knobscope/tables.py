"""Names, columns and types of all tables: the interface between stages, rules and users.

Tables are parquet files, written by DuckDB (no second parquet library) and always whole: beside the target, then
renamed.
"""

import json
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLES", "TRACE_TABLES", "read_table", "write_json", "write_table"]

#: Rows of one statement: seven times as fast as row by row.
_ROWS_AT_ONCE = 200
_CASE = {"dbms": "VARCHAR", "device": "VARCHAR", "workload": "VARCHAR"}

#: Table -> column -> DuckDB type. Units are in the names.
TABLES: dict[str, dict[str, str]] = {
    # One row per planned run of a block, in the order in which it will run.
    "plan": {
        "block_id": "VARCHAR",
        "phase": "VARCHAR",  # screen | sweep
        "round": "INTEGER",
        "position": "INTEGER",
        "config_id": "VARCHAR",
        "is_sentinel": "BOOLEAN",
        "repeat": "INTEGER",
        "load_id": "VARCHAR",
        "configuration": "VARCHAR",  # JSON: knob -> value
    },
    "runs": {
        "run_id": "VARCHAR",
        "study": "VARCHAR",
        "block_id": "VARCHAR",
        "phase": "VARCHAR",
        "round": "INTEGER",
        "position": "INTEGER",
        **_CASE,
        "dbms_version": "VARCHAR",
        "tier": "VARCHAR",
        "workload_class": "VARCHAR",
        "config_id": "VARCHAR",
        "is_sentinel": "BOOLEAN",
        "repeat": "INTEGER",
        "status": "VARCHAR",  # ok | failed_start | failed_run | rejected_value | timeout | invalid
        "reason": "VARCHAR",
        "log_tail": "VARCHAR",
        "started_at": "TIMESTAMP",
        "machine": "VARCHAR",  # kernel, processor, memory
        "session": "VARCHAR",  # one call of `measure`; a block that was resumed has several
        "window_s": "DOUBLE",
        "overhead_s": "DOUBLE",  # everything but warm-up and the measured window
        "operations": "BIGINT",
        "failed_operations": "BIGINT",
        "throughput_ops": "DOUBLE",
        "latency_mean_us": "DOUBLE",
        "latency_p50_us": "DOUBLE",
        "latency_p95_us": "DOUBLE",
        "latency_p99_us": "DOUBLE",
        "cpu_s": "DOUBLE",
        "cpu_share": "DOUBLE",  # of all cores of the machine, over the measured window
        "monitor": "VARCHAR",  # bpf | procfs
        "monitor_reason": "VARCHAR",  # why procfs had to take the place of bpf
        "lost_events": "BIGINT",
        "starts_without_completion": "BIGINT",
        "completions_without_start": "BIGINT",
        "unattributed_share": "DOUBLE",
        "files_overflow": "BIGINT",  # requests of more files than fit
        "addresses_overflow": "BIGINT",
    },
    "knob_values": {"config_id": "VARCHAR", "dbms": "VARCHAR", "knob": "VARCHAR", "value": "VARCHAR"},
    "effective_values": {
        "run_id": "VARCHAR",
        "knob": "VARCHAR",
        "requested": "VARCHAR",
        "effective": "VARCHAR",
    },
    "intervals": {
        "run_id": "VARCHAR",
        "t_s": "DOUBLE",
        "ops": "BIGINT",
        "failed": "BIGINT",
        "latency_p95_us": "DOUBLE",
        "latency_p99_us": "DOUBLE",
    },
    "operations": {
        "run_id": "VARCHAR",
        "operation": "VARCHAR",
        "ok": "BIGINT",
        "failed": "BIGINT",
        "retried": "BIGINT",  # attempts that were repeated because they conflicted with others; null where not known
        "per_minute": "DOUBLE",  # of ok; of NEW_ORDER what TPC-C calls tpmC
        "latency_mean_us": "DOUBLE",
        "latency_p50_us": "DOUBLE",
        "latency_p95_us": "DOUBLE",
        "latency_p99_us": "DOUBLE",
    },
    # What the data was checked for after the run; one that does not hold makes the run invalid.
    "checks": {"run_id": "VARCHAR", "condition": "VARCHAR", "holds": "BOOLEAN", "detail": "VARCHAR"},
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
    "device_profile": {
        "device": "VARCHAR",
        "tier": "VARCHAR",
        "tier_rank": "INTEGER",  # higher is faster
        "block_device": "VARCHAR",
        "filesystem": "VARCHAR",
        "measured_at": "TIMESTAMP",
        "preferred_write_bytes": "BIGINT",
        "fsync_rate": "DOUBLE",  # 4 KiB writes, each followed by fsync, per second, one at a time
        "fsync_p50_us": "DOUBLE",
        "random_read_iops_qd1": "DOUBLE",
        "random_read_iops_best": "DOUBLE",
        "best_queue_depth": "INTEGER",
        "random_sequential_ratio": "DOUBLE",  # 4 KiB reads at depth 1: random / sequential
    },
    # The measured curves behind the profile.
    "device_curve": {
        "device": "VARCHAR",
        "curve": "VARCHAR",  # write_size | write_size_fsync | queue_depth
        "pattern": "VARCHAR",  # read | write | randread | randwrite
        "block_bytes": "BIGINT",
        "queue_depth": "INTEGER",
        "iops": "DOUBLE",
        "bytes_per_s": "DOUBLE",
        "latency_p50_us": "DOUBLE",
    },
    "importance": {
        **_CASE,
        "round": "INTEGER",
        "model": "VARCHAR",
        "knob": "VARCHAR",
        "rank": "INTEGER",
        "importance": "DOUBLE",
        "permutation": "DOUBLE",
        "above_noise": "BOOLEAN",
        "selected": "BOOLEAN",
    },
    "important_points": {
        **_CASE,
        "knob": "VARCHAR",
        "type": "VARCHAR",  # knee | turning | cliff
        "value": "VARCHAR",
        "turn_ratio": "DOUBLE",
        "share": "DOUBLE",  # of the variance, explained by the knob's main effect
        "score": "DOUBLE",  # turn ratio x share: the order of the points
    },
    # How the rank of a knob changes between two cases that differ in device only, or in workload only.
    "rank_drift": {
        "dbms": "VARCHAR",
        "changed": "VARCHAR",  # device | workload
        "same": "VARCHAR",  # the workload or device that both have
        "from_case": "VARCHAR",  # the device or workload of each
        "to_case": "VARCHAR",
        "knob": "VARCHAR",
        "rank_from": "INTEGER",
        "rank_to": "INTEGER",
        "change": "INTEGER",
        "drifts": "BOOLEAN",  # rank intervals apart, both rankings trustworthy, above noise in one of them
    },
    "rank_overlap": {
        "dbms": "VARCHAR",
        "changed": "VARCHAR",
        "same": "VARCHAR",
        "from_case": "VARCHAR",
        "to_case": "VARCHAR",
        "top": "INTEGER",  # so many leaders were compared
        "overlap": "INTEGER",
        "only_from": "VARCHAR",  # leaders of one case alone
        "only_to": "VARCHAR",
        "rank_correlation": "DOUBLE",  # Spearman's, over all knobs
        "drifting": "INTEGER",
        "trustworthy": "BOOLEAN",  # both rankings
    },
    # Configurations that tuners tried; their runs are in `runs`, with the default configuration between them.
    "trials": {
        **_CASE,
        "space": "VARCHAR",  # topK or all
        "knobs": "INTEGER",  # in the space
        "seed": "INTEGER",
        "trial": "INTEGER",  # from 1
        "run_id": "VARCHAR",
        "config_id": "VARCHAR",
        "is_winner": "BOOLEAN",  # the best of its tuner, and better than the default was
    },
    # The best configuration of each tuner, measured again in blocks with the default; natural-log ratios to it.
    "tuned": {
        **_CASE,
        "space": "VARCHAR",
        "seed": "INTEGER",
        "trial": "INTEGER",  # that found it; NULL: none beat the default
        "config_id": "VARCHAR",
        "estimate": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "runs": "INTEGER",
    },
    # What a knob does to the I/O profile, from the screening runs; responses are counted per operation of the load.
    "io_related": {
        **_CASE,
        "knob": "VARCHAR",
        "response": "VARCHAR",
        "runs": "INTEGER",  # configurations that it was tested with
        "explained_share": "DOUBLE",  # of the variance of the normal scores, beside stronger knobs
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all knobs and responses of the case
        "verdict": "VARCHAR",  # related | none | insufficient
    },
    "fits": {
        **_CASE,
        "round": "INTEGER",  # NULL where a model of an earlier study took the place of screening
        "prior": "VARCHAR",  # that model
        "model": "VARCHAR",
        "runs": "INTEGER",
        "stopped": "BOOLEAN",
        "reason": "VARCHAR",
        "r2_min": "DOUBLE",
        "r2_median": "DOUBLE",
        "holdout_r2": "DOUBLE",
        "trustworthy": "BOOLEAN",
        "reason_trust": "VARCHAR",
    },
    # One-at-a-time effects against the sentinel of the same block, per metric; natural-log ratios or differences.
    "effects": {
        **_CASE,
        "tier": "VARCHAR",
        "tier_rank": "INTEGER",
        "knob": "VARCHAR",
        "value": "VARCHAR",
        "baseline": "VARCHAR",
        "unit": "VARCHAR",
        "step": "INTEGER",  # place above (+) or below (-) the baseline in the knob's order; NULL for special values
        "metric": "VARCHAR",
        "estimate": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # false discovery rate (Benjamini-Hochberg) over all effects of the metric
        "standard_error": "DOUBLE",
        "degrees": "INTEGER",  # residual degrees of freedom
        "noise": "DOUBLE",  # standard deviation of one run
        "reference": "DOUBLE",  # mean of the sentinel on the metric's own scale (geometric where effects are ratios)
        "runs": "INTEGER",
        "blocks": "INTEGER",
        "expect": "VARCHAR",
        "mechanism": "VARCHAR",
        "durability": "BOOLEAN",
    },
    # Whether the runs of a sweep block can be compared with each other; a resumed block has a row per session.
    "blocks": {
        "block_id": "VARCHAR",
        "session": "VARCHAR",
        **_CASE,
        "sessions": "INTEGER",  # of the whole block
        "runs": "INTEGER",  # ok ones
        "sentinels": "INTEGER",  # ok ones
        "sentinel_change": "DOUBLE",  # natural-log ratio of throughput, last sentinel against the first
        "drift": "DOUBLE",  # natural-log change of throughput from the first run to the last, as a straight line
        "drift_p": "DOUBLE",
        "bend": "DOUBLE",  # natural-log distance of both ends from the middle, beside the straight line
        "bend_p": "DOUBLE",
        "treatment": "VARCHAR",  # none | position (its drift is a term of the model) | dropped
        "reason": "VARCHAR",
    },
    # Effects on throughput compared between two devices of different tiers: higher minus lower, natural-log ratios.
    "tier_contrasts": {
        "dbms": "VARCHAR",
        "workload": "VARCHAR",
        "knob": "VARCHAR",
        "value": "VARCHAR",
        "baseline": "VARCHAR",
        "lower_device": "VARCHAR",
        "higher_device": "VARCHAR",
        "estimate": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all contrasts of the study
    },
    # How much slower reads are while the device also writes, in runs of the default configuration of the sweep.
    "interference": {
        **_CASE,
        "runs": "INTEGER",  # that have intervals of both kinds
        "quiet_us": "DOUBLE",  # mean latency of a read while (nearly) nothing is written
        "busy_us": "DOUBLE",  # while no less is written than usual
        "estimate": "DOUBLE",  # natural-log ratio, busy to quiet
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all cases
        "gain": "DOUBLE",  # natural-log ratio of throughput, if all reads were as fast as in quiet: an upper bound
        "gain_low": "DOUBLE",
        "gain_high": "DOUBLE",
    },
    # Order in which a file is asked for (system calls) and is read or written on the device, in runs of the default
    # configuration of the sweep. Files whose names change from run to run go together by their role.
    "access_contrasts": {
        **_CASE,
        "file": "VARCHAR",
        "role": "VARCHAR",
        "op": "VARCHAR",
        "runs": "INTEGER",
        "calls": "BIGINT",
        "requests": "BIGINT",
        "call_bytes": "DOUBLE",  # in the mean of a call
        "request_bytes": "DOUBLE",
        "logical_share": "DOUBLE",  # sequential, of the calls
        "device_share": "DOUBLE",  # sequential, of the requests
        "logical_pattern": "VARCHAR",
        "device_pattern": "VARCHAR",
        "estimate": "DOUBLE",  # device minus logical
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all files of the study
    },
    # Every knob that a DBMS of the study has, whether the study varies it or not.
    "knobs": {
        "dbms": "VARCHAR",
        "knob": "VARCHAR",
        "mechanism": "VARCHAR",
        "in_study": "BOOLEAN",
    },
    "cases": {
        **_CASE,
        "workload_class": "VARCHAR",
        "threads": "INTEGER",  # of the load generator
        "dedicated": "BOOLEAN",  # whether the DBMS has the file system to itself
    },
    "findings": {
        "rule": "VARCHAR",
        **_CASE,
        "knob": "VARCHAR",
        "value": "VARCHAR",
        "verdict": "VARCHAR",  # mismatch | none | insufficient
        "effect": "DOUBLE",
        "effect_low": "DOUBLE",
        "effect_high": "DOUBLE",
        "penalty": "DOUBLE",
        "evidence": "VARCHAR",  # JSON
        "sentence": "VARCHAR",
        "confirmed": "VARCHAR",  # yes | no | not_tested
        "confirmation": "VARCHAR",  # sentence on the fio runs that reproduce it
    },
}

#: Tables of a trace of single requests, a directory of their own per run; no part of a study's database.
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


def write_table(path: Path, table: str, rows: Iterable[dict[str, Any]]) -> None:
    """Write rows as parquet with exactly the columns of the table; a missing key is NULL, an unknown one a KeyError."""
    import duckdb

    columns = TABLES[table]
    values = []
    for row in rows:
        if unknown := set(row) - set(columns):
            raise KeyError(f"table {table} has no columns {sorted(unknown)}")
        values.append([row.get(column) for column in columns])
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    with duckdb.connect() as connection:
        definition = ", ".join(f'"{name}" {kind}' for name, kind in columns.items())
        connection.execute(f"CREATE TABLE t ({definition})")
        marks = f"({', '.join('?' * len(columns))})"
        connection.execute("BEGIN")
        for start in range(0, len(values), _ROWS_AT_ONCE):
            part_of_them = values[start : start + _ROWS_AT_ONCE]
            places = ", ".join([marks] * len(part_of_them))
            connection.execute(f"INSERT INTO t VALUES {places}", list(chain(*part_of_them)))  # noqa: S608
        connection.execute("COMMIT")
        connection.execute("COPY t TO ? (FORMAT parquet)", [str(part)])
    part.replace(path)


def read_table(paths: Sequence[Path]) -> "pd.DataFrame":
    """Return the rows of parquet files of one table as one data frame, in the order of the paths."""
    import duckdb

    with duckdb.connect() as connection:
        return connection.execute(
            "SELECT * FROM read_parquet(?, union_by_name = true)", [[str(path) for path in paths]]
        ).df()


def write_json(path: Path, content: Any) -> None:
    """Write JSON whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_name(path.name + ".part")
    part.write_text(json.dumps(content, indent=1, default=str) + "\n", encoding="utf-8")
    part.replace(path)
