"""Tables of measured runs: their outcome, and what load client and DBMS said."""

from knobscope.tables.case import CASE

__all__ = ["RUNS_TABLES"]

RUNS_TABLES: dict[str, dict[str, str]] = {
    "runs": {
        "run_id": "VARCHAR",
        "study": "VARCHAR",
        "block_id": "VARCHAR",
        "phase": "VARCHAR",
        "round": "INTEGER",
        "position": "INTEGER",
        **CASE,
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
        "window_change": "DOUBLE",  # of throughput from begin to end of the window, as a share of its median
        "window_trend_p": "DOUBLE",  # that there is no trend at all; NULL: too few intervals to tell
        "window_steady": "BOOLEAN",  # whether the change is small, or could be chance
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
    # The overhead of a run by phase, in their order; `load` is what warm-up and window took beyond their lengths.
    "phases": {
        "run_id": "VARCHAR",
        "phase": "VARCHAR",  # restore | start | connect | load | collect | stop | clean
        "seconds": "DOUBLE",
    },
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
}
