"""A study that was never measured: runs with known effects, drift and failures, on the way that real ones take.

Plans come from `knobscope.stages.plan`, tables from `knobscope.tables`, effects and findings from
`knobscope.stages.detect`.
"""

import json
import math
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import duckdb
import numpy as np

from knobscope.durable_files import write_sealed
from knobscope.specs import Case, StudySpecs
from knobscope.stages.detect import StudyFiles, build_database, run_rules, write_findings
from knobscope.stages.plan import plan_screening, plan_sweep
from knobscope.tables import write_table, write_tables

Row = dict[str, Any]
Tables = dict[str, list[Row]]

SWEPT = ["synchronous", "page_size", "wal_autocheckpoint"]
DEVICES = {"fast-flash": (9000.0, 16384), "slow-disk": (240.0, 65536)}  # ops/s of the default, preferred size

#: (device or "", knob, value) -> natural-log change of throughput.
EFFECTS = {
    ("fast-flash", "synchronous", "off"): math.log(9.8),
    ("fast-flash", "synchronous", "normal"): math.log(4.1),
    ("slow-disk", "synchronous", "off"): math.log(31),
    ("slow-disk", "synchronous", "normal"): math.log(14),
    ("", "page_size", 1024): math.log(0.74),
    ("fast-flash", "page_size", 65536): math.log(0.62),
    ("slow-disk", "page_size", 65536): math.log(1.25),
    ("fast-flash", "page_size", 16384): math.log(1.04),
    ("", "wal_autocheckpoint", 10): math.log(0.55),
    ("", "wal_autocheckpoint", 10000): math.log(1.02),
}
#: Position among the screening runs of a case -> how it failed.
FAILURES = {
    2: ("failed_start", "the server ended before it answered (exit code 1)", "FATAL: cannot map 64 GiB\nshutting down"),
    4: ("rejected_value", "the server refused mmap_size = 1099511627776", "error: mmap_size out of range"),
    6: ("timeout", "no result within 36 s", "checkpoint still running\ncheckpoint still running"),
    8: ("failed_run", "312 of 40,211 operations failed", "SQLITE_BUSY: database is locked"),
    9: ("invalid", "not in force: cache_size=8000 reads back 2000", ""),
}


def build_study(folder: Path, specs: StudySpecs) -> Path:
    """Write a whole study below a folder and return its DuckDB file, findings included."""
    rng = np.random.default_rng(7)
    tables: Tables = {name: [] for name in ("runs", *_IO)}
    plans: list[Path] = []
    fits: list[Path] = []
    for number, case in enumerate(specs.cases):
        root = folder / str(case)
        clock = datetime(2026, 11, 20, 21, 3) + timedelta(hours=2 * number)
        for name, plan in (("screen-0", plan_screening(specs, case, 0)), ("sweep-0", plan_sweep(specs, case, SWEPT))):
            write_table(root / "plan" / f"{name}.parquet", "plan", plan)
            plans.append(root / "plan" / f"{name}.parquet")
            for block in dict.fromkeys(row["block_id"] for row in plan):
                rows = [row for row in plan if row["block_id"] == block]
                clock = _measure(tables, case, rows, rng, clock, drifts=block.endswith("sweep-0-1"))
        fits += _write_fits(root, case)
    write_tables(folder / "runs", tables)
    devices = [_write_device(folder, specs, name) for name in specs.devices]
    database = folder / "study.duckdb"
    build_database(StudyFiles([folder / "runs"], plans, fits, devices), specs, database)
    _judge(database, specs)
    return database


def change_study(database: Path, *statements: str, parameters: Sequence[object] = ()) -> Path:
    """Execute SQL on a study's database, the first statement with parameters."""
    with duckdb.connect(str(database)) as connection:
        for number, statement in enumerate(statements):
            connection.execute(statement, list(parameters) if number == 0 else [])
    return database


def _judge(database: Path, specs: StudySpecs) -> None:
    with duckdb.connect(str(database), read_only=True) as connection:
        rows = run_rules(connection, specs)
    fired = [row for row in rows if row["verdict"] == "mismatch"]
    for row, (confirmed, sentence) in zip(fired, _CONFIRMATIONS, strict=False):
        row |= {"confirmed": confirmed, "confirmation": sentence}
    write_findings(database, rows)


_CONFIRMATIONS = [
    ("yes", "fio with the same writes, but of 16 KiB each, does 1.9x as many bytes per second."),
    ("no", "fio with and without the larger writes is equally fast (1.01x): the cause lies elsewhere."),
]


def _measure(
    tables: Tables,
    case: Case,
    plan: list[Row],
    rng: np.random.Generator,
    clock: datetime,
    *,
    drifts: bool,
) -> datetime:
    """Add the runs of a block to the tables; returns when it ended."""
    for number, row in enumerate(plan):
        run_id = f"{case.device}-{row['block_id'].rsplit('/', 1)[1]}-{number}"
        clock += timedelta(seconds=7.6)
        change = _change_of(case, json.loads(row["configuration"]))
        drift = -0.35 * number / len(plan) if drifts and case.device == "slow-disk" else 0.0
        ops = DEVICES[case.device][0] * math.exp(change + drift + rng.normal(0, 0.03))
        run = _run(case, row, run_id, clock, ops, rng)
        failure = FAILURES.get(row["position"]) if row["phase"] == "screen" and not row["is_sentinel"] else None
        if failure:
            empty = dict.fromkeys((*_MEASURED, "monitor", "lost_events", "unattributed_share"))
            run |= {**empty, "status": failure[0], "reason": failure[1], "log_tail": failure[2]}
        tables["runs"].append(run)
        if not failure:
            for name, rows in _io_of(case, run, json.loads(row["configuration"]), rng).items():
                tables[name] += [{"run_id": run_id, **one} for one in rows]
    return clock + timedelta(minutes=4)


_IO = ("io_profile", "io_sizes", "queue_depth", "io_latency", "io_series", "files", "file_access", "submitters")
_MEASURED = ("window_s", "operations", "throughput_ops", "latency_mean_us", "latency_p50_us", "latency_p95_us",
             "latency_p99_us", "cpu_s", "cpu_share", "machine_cpu_share")  # fmt: skip


def _change_of(case: Case, configuration: Row) -> float:
    return sum(
        EFFECTS.get((case.device, knob, value), EFFECTS.get(("", knob, value), 0.0))
        for knob, value in configuration.items()
    )


def _run(case: Case, row: Row, run_id: str, clock: datetime, ops: float, rng: np.random.Generator) -> Row:
    mean = 4e6 / ops
    names = ("block_id", "phase", "round", "position", "config_id", "is_sentinel", "repeat")
    return {
        "run_id": run_id,
        "study": "sqlite-two-tiers",
        **{name: row[name] for name in names},
        "dbms": case.dbms,
        "device": case.device,
        "workload": case.workload,
        "dbms_version": "3.40.1",
        "tier": "nvme_ssd" if case.device == "fast-flash" else "hdd",
        "workload_class": "write",
        "status": "ok",
        "started_at": clock,
        "session": row["block_id"],
        "window_s": 5.0,
        "overhead_s": 1.4 + rng.random() / 5,
        "operations": round(5 * ops),
        "failed_operations": 0,
        "throughput_ops": ops,
        "latency_mean_us": mean,
        "latency_p50_us": 0.7 * mean,
        "latency_p95_us": 2.6 * mean * math.exp(rng.normal(0, 0.05)),
        "latency_p99_us": 5 * mean,
        "cpu_s": 2 + ops / 3000,
        "cpu_share": min(0.95, 0.2 + ops / 120000),
        "machine_cpu_share": min(0.99, 0.4 + ops / 100000),
        "monitor": "bpf",
        "lost_events": 0,
        "unattributed_share": 0.01 * rng.random(),
    }


def _io_of(case: Case, run: Row, configuration: Row, rng: np.random.Generator) -> dict[str, list[Row]]:
    """Return rows of the block layer's tables, without run_id."""
    page, preferred = configuration["page_size"], DEVICES[case.device][1]
    writes = max(round(run["operations"] * (1.1 if configuration["synchronous"] == "full" else 0.12)), 40)
    sizes = (
        {4096: 0.5, 8192: 0.2, max(page, 4096): 0.2, 4 * max(page, 4096): 0.1}
        if page > 1024
        else {1024: 0.55, 3072: 0.45}
    )
    counts = {size: round(writes * share) for size, share in sizes.items()}
    aligned = round(sum(count for size, count in counts.items() if size % preferred == 0) * 0.9)
    total = sum(counts.values())
    sequential = round(total * (0.62 if configuration["wal_autocheckpoint"] > 100 else 0.31))
    written = sum(size * count for size, count in counts.items())
    profile = [
        {"op": "write", "requests": total, "bytes": written, "aligned_requests": aligned,
         "aligned_share": aligned / total, "sequential_requests": sequential, "sequential_share": sequential / total,
         "fua": 0, "preflush": total // 3,
         "own_requests": round(total * 0.85), "inode_requests": round(total * 0.1),
         "journal_requests": round(total * 0.05), "foreign_requests": 0},
        {"op": "read", "requests": 900, "bytes": 900 * 4096, "aligned_requests": 100, "sequential_requests": 240,
         "sequential_share": 0.27, "own_requests": 900, "inode_requests": 0,
         "journal_requests": 0, "foreign_requests": 0},
        {"op": "flush", "requests": total // 3, "bytes": 0},
    ]  # fmt: skip
    busy = round(4e9 * min(1.0, 0.3 + 3000 / run["throughput_ops"]))
    shares = (
        {1: 0.97, 2: 0.02, 3: 0.01} if configuration["synchronous"] == "full" else {1: 0.6, 2: 0.2, 4: 0.12, 9: 0.08}
    )
    depths = [
        {"queue": queue, "depth": depth, "time_ns": round(busy * share)}
        for depth, share in shares.items()
        for queue in (-1, 0)
    ]
    idle = [{"queue": -1, "depth": 0, "time_ns": 5 * 10**9 - busy}]
    slow = 90.0 if case.device == "fast-flash" else 6000.0
    return {
        "io_profile": profile,
        "io_sizes": [{"op": "write", "bytes": size, "requests": count} for size, count in counts.items()]
        + [{"op": "read", "bytes": 4096, "requests": 880}, {"op": "read", "bytes": 16384, "requests": 20}],
        "queue_depth": depths + idle,
        "files": _files_of(run, total, written),
        "file_access": _calls_of(run, total, written),
        "submitters": [
            {"submitter": name, "op": op, "requests": round(requests * share), "bytes": round(size * share)}
            for op, requests, size in (("write", total, written), ("read", 900, 900 * 4096))
            for name, share in (("sqlite-1", 0.5), ("sqlite-2", 0.2), ("jbd2/sdb-8", 0.3 if op == "write" else 0))
            if share
        ],
        "io_latency": [
            {"op": op, "low_us": edge, "high_us": edge * 2**0.25,
             "requests": round(800 * math.exp(-((k - 8) ** 2) / shape))}
            for op, base, shape in (("write", slow, 14), ("read", slow * 0.7, 8), ("flush", slow * 9, 5))
            for k in range(2, 16)
            for edge in [base * 2 ** ((k - 8) / 4)]
        ]
        if run["position"] == 0
        else [],
        "io_series": [
            {"t_s": step / 3, "op": op, "requests": requests, "bytes": requests * 6000,
             "depth": 1 + rng.random() / 2, "latency_mean_us": slow * (1 + rng.random() / 3)}
            for op, many in (("write", total / 50), ("read", 18))
            for step in range(1, 16)
            for requests in [round(many * (0.4 if step % 16 < 3 else 1.1) * (0.9 + rng.random() / 5))]
        ]
        if run["is_sentinel"]
        else [],
    }  # fmt: skip


#: Part of the writes -> file, role, table, share of them, share in order.
_WRITTEN = (
    ("ycsb.db", "data", None, 0.30, 0.04),
    ("ycsb.db-wal", "log", None, 0.09, 0.93),
    ("journal", "journal", None, 0.61, 0.98),
)


def _files_of(run: Row, writes: int, written: int) -> list[Row]:
    """Return rows of `files` that add up to the writes and reads of the run."""
    rows = []
    for file, role, table, share, order in _WRITTEN:
        rows.append({"file": file, "role": role, "table_name": table, "op": "write", "requests": round(writes * share),
                     "bytes": round(written * share), "address_requests": 0, "sequential_share": order,
                     "pattern": "sequential" if order > 0.8 else "random"})  # fmt: skip
    return [*rows, {"file": "ycsb.db", "role": "data", "op": "read", "requests": 900, "bytes": 900 * 4096,
                    "address_requests": 900}] if run["is_sentinel"] else rows  # fmt: skip


def _calls_of(run: Row, writes: int, written: int) -> list[Row]:
    """Return rows of `file_access`: the database is written in order, though the device sees no order."""
    rows = [
        {"file": file, "role": role, "op": "write", "calls": writes, "bytes": written, "sequential_share": order,
         "pattern": "sequential" if order > 0.8 else "random"}
        for file, role, order in (("ycsb.db", "data", 0.95), ("ycsb.db-wal", "log", 0.97))
    ]  # fmt: skip
    return rows if run["is_sentinel"] else []


def write_trace(folder: Path, run_id: str, requests: int = 2000) -> Path:
    """Write a trace of a run: one file is read at random and written in order, another one has no offsets.

    A request is issued every 2.5 ms, to two queues in turn; those of the second take 12.5 ms: 2.5 are in flight. Every
    fourth is the DBMS's, for one of two transactions.
    """
    path = folder / run_id / "events.parquet"
    path.parent.mkdir(parents=True)
    query = """
        CREATE TABLE events AS
        SELECT (i * 2_500_000)::BIGINT AS ts_ns, (hash(i) % 400_000)::BIGINT AS lba, 4096::BIGINT AS bytes,
            CASE WHEN i % 3 = 0 THEN 'read' ELSE 'write' END AS op,
            CASE WHEN i % 10 < 8 THEN 'ycsb.db' END AS file,
            CASE WHEN i % 10 < 8 THEN CASE WHEN i % 3 = 0 THEN (hash(i) % 20_000) * 4096 ELSE i * 8192 END END::BIGINT
                AS "offset",
            CASE WHEN i % 16 = 0 THEN 'PAYMENT' WHEN i % 4 = 0 THEN 'NEW_ORDER' END AS operation,
            CASE WHEN i % 4 = 0 THEN 'sqlite-1' ELSE 'kworker/u8:' || (i % 3) END AS comm,
            (i % 2)::INTEGER AS queue, CASE WHEN i % 2 = 0 THEN 90_000 ELSE 12_500_000 END::BIGINT AS lat_ns
        FROM range(?) t(i)
    """
    with duckdb.connect() as connection:
        connection.execute(query, [requests])
        connection.execute("COPY events TO ? (FORMAT parquet)", [str(path)])
    return path


def _write_fits(root: Path, case: Case) -> list[Path]:
    ranked = [("synchronous", 1.21, 0.83), ("wal_autocheckpoint", 0.21, 0.09), ("page_size", 0.12, 0.05),
              ("cache_size", 0.011, 0.004), ("mmap_size", 0.004, 0.001), ("temp_store", -0.002, 0.0)]  # fmt: skip
    importance = [
        {"knob": knob, "rank": rank + 1, "rank_low": rank + 1, "rank_high": min(rank + 2, 6),
         "importance": share, "permutation": permutation, "above_noise": rank < 3,
         "selected": rank < 3}
        for rank, (knob, permutation, share) in enumerate(ranked)
    ]  # fmt: skip
    points = [{"knob": "wal_autocheckpoint", "type": "knee", "value": "1000", "turn_ratio": 3.4}]
    cliff = {"synchronous": "full", "wal_autocheckpoint": 100, "page_size": 65536, "mmap_size": 0}
    near = {**cliff, "page_size": 4096}
    worst = [{"configuration": cliff, "runs": 1, "measured": 120.0, "predicted": 300.0},
             {"configuration": near, "runs": 2, "measured": 410.0, "predicted": 400.0}]  # fmt: skip
    gains = [("page_size", 65536, 0.22, 0.15, 0.3), ("wal_autocheckpoint", 10000, 0.2, 0.11, 0.29),
             ("cache_size", -20000, 0.01, -0.02, 0.04)]  # fmt: skip
    tunability = {"leaders": 5, "common_by_importance": 3.8, "common_by_gain": 3.25, "knobs": [
        {"knob": knob, "value": value, "gain": gain, "gain_low": low, "gain_high": high}
        for knob, value, gain, low, high in gains]}  # fmt: skip
    rounds: list[tuple[bool, str, Callable[[int], float]]] = [
        (False, "R2 reaches 0.9 on 4 of 10 splits (smallest 0.612)", lambda split: 0.612 + 0.035 * split),
        (True, "R2 is at least 0.931 on all 10 splits", lambda split: 0.931 + 0.005 * split),
    ]
    paths = []
    for number, (stopped, reason, score) in enumerate(rounds):
        paths.append(root / "fit" / f"{number}.json")
        fit = {"model": "anova", "runs": 15 * (number + 1), "stopped": stopped, "reason": reason, "points": points,
               "r2_splits": [score(split) for split in range(10)], "importance": importance, "trustworthy": stopped,
               "worst_predicted": worst, "holdout_r2": 0.955, "tunability": tunability,
               "reason_trust": "the same knobs lead on every split",
               "warm_start": ["sqlite-all"], "expected": ["synchronous", "page_size"]}  # fmt: skip
        write_sealed(paths[-1], fit)
    return paths


def _write_device(folder: Path, specs: StudySpecs, name: str) -> Path:
    fast, preferred = name == "fast-flash", DEVICES[name][1]
    best = 1.6e9 if fast else 1.2e8
    curves: list[Row] = []
    for kib in (4, 8, 16, 32, 64, 128):
        size = kib * 1024
        speed = best * (1 if size >= preferred else 0.2 + 0.7 * size / preferred)
        curves.append({"curve": "write_size", "pattern": "randwrite", "block_bytes": size, "queue_depth": 4,
                       "shift_bytes": 0, "iops": speed / size, "bytes_per_s": speed})  # fmt: skip
    for kib in range(4, 132, 4):
        for shift in (0, 4096):
            partly = fast and (shift or kib % 16)
            us = (210 if fast else 20100) + kib * 0.4 + (90 if partly else 0)
            curves.append({"curve": "write_size_durable", "pattern": "randwrite", "block_bytes": kib * 1024,
                           "queue_depth": 1, "shift_bytes": shift, "iops": 1e6 / us, "latency_p50_us": us,
                           "bytes_per_s": kib * 1024e6 / us})  # fmt: skip
    for pattern, base in {"randread": 6000, "read": 9000, "randwrite": 11000, "write": 14000}.items():
        slow = {"randread": 80, "read": 4300, "randwrite": 79, "write": 3900}[pattern]
        for depth in (1, 2, 4, 8, 16, 32):
            iops = base * min(depth, 14) ** 0.9 if fast else slow * (1 + 0.02 * depth)
            curves.append({"curve": "queue_depth", "pattern": pattern, "block_bytes": 4096, "queue_depth": depth,
                           "iops": iops, "bytes_per_s": 4096 * iops})  # fmt: skip
    profile = {
        "device": name,
        "tier": specs.devices[name].tier,
        "tier_rank": 3 if fast else 0,
        "block_device": "nvme0n1" if fast else "sdb",
        "filesystem": "ext4",
        "measured_at": "2026-11-20T20:41:00",
        "preferred_write_bytes": preferred,
        "write_unit_bytes": preferred if fast else None,
        "fsync_rate": 3320.0 if fast else 49.0,
        "fsync_p50_us": 210.0 if fast else 20100.0,
        "random_read_iops_qd1": 6000.0 if fast else 80.0,
        "random_read_iops_best": 64000.0 if fast else 131.0,
        "best_queue_depth": 16 if fast else 32,
        "random_sequential_ratio": 0.66 if fast else 0.0186,
        "curves": curves,
        "properties": [
            {
                "device": name,
                "property": "write_unit",
                "value": preferred if fast else None,
                "unit": "bytes",
                "confidence": "high",
                "because": "writes of all sizes were compared",
                "kernel": "optimal_io_size 0",
            },
            {
                "device": name,
                "property": "atomic_write",
                "value": None,
                "unit": "bytes",
                "confidence": "not measured",
                "because": "only a power cut would show it",
                "kernel": None,
            },
        ],
    }
    path = folder / "devices" / f"{name}.json"
    write_sealed(path, profile)
    return path
