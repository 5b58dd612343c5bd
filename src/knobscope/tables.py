"""Names, columns and types of all tables: the interface between stages, rules and users.

Tables are parquet files, written by DuckDB (no second parquet library) and always whole: beside the target, then
renamed.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["TABLES", "read_table", "write_json", "write_table"]

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
        "latency_mean_us": "DOUBLE",
        "latency_p50_us": "DOUBLE",
        "latency_p95_us": "DOUBLE",
        "latency_p99_us": "DOUBLE",
    },
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
    "files": {
        "run_id": "VARCHAR",
        "file": "VARCHAR",
        "op": "VARCHAR",
        "requests": "BIGINT",
        "bytes": "BIGINT",
        "sequential_share": "DOUBLE",
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
    },
    "fits": {
        **_CASE,
        "round": "INTEGER",
        "model": "VARCHAR",
        "runs": "INTEGER",
        "stopped": "BOOLEAN",
        "reason": "VARCHAR",
        "r2_min": "DOUBLE",
        "r2_median": "DOUBLE",
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
        if values:
            marks = ", ".join("?" * len(columns))
            connection.execute("BEGIN")
            connection.executemany(f"INSERT INTO t VALUES ({marks})", values)  # noqa: S608
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
