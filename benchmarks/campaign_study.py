"""The study that `campaign.py` measures knobscope with: as large as asked for, simulated, in the files of a real one.

Plans come from `knobscope.stages.plan`, runs are records as `knobscope measure` makes them, and `write_block` writes
them.
"""

import csv
import json
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from math import ceil
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import yaml

from knobscope.durable_files import write_sealed
from knobscope.identity import hash_identity
from knobscope.specs import Case, StudySpecs, load_study
from knobscope.stages.measure.block import write_block
from knobscope.stages.plan import plan_screening, plan_sweep
from knobscope.tables import PlanRow, RunRecord, write_table

NAME = "campaign"
#: Runs of a case: five rounds of four blocks of 24 configurations, nine sweeps of 55 values, each with its sentinels.
RUNS_OF_CASE = 1100
ROUNDS, BLOCKS, REPEATS, SWEPT = 5, 4, 9, 11
DBMS, DEVICES, WORKLOADS = 4, 5, 3
TIERS = {"hdd": 240.0, "sata": 2500.0, "sata2": 3000.0, "nvme": 9000.0, "nvme2": 12000.0}  # ops/s of the default
_RANKS = {"hdd": 1, "sata_ssd": 2, "nvme_ssd": 3}
_MECHANISMS = ("flush", "page_size", "cache", "io_workers", "prefetch", "checkpoint", "compaction", "other")
KNOBS = [f"knob_{number:02}" for number in range(20)]
VALUES = (1, 2, 4, 8, 16, 32)
DEFAULT = 4


def write_specs(root: Path, runs: int) -> Path:
    """Write the specs of a study of about so many runs (whole cases) below a folder; returns the study's file."""
    cases = max(1, round(runs / RUNS_OF_CASE))
    dbms = min(DBMS, cases)
    devices = min(DEVICES, ceil(cases / dbms))
    names = [f"simdb{number}" for number in range(dbms)]
    tiers = list(TIERS)[-devices:]
    workloads = [f"load{number}" for number in range(min(WORKLOADS, ceil(cases / dbms / devices)))]
    for name in names:
        _write(root, f"dbms/{name}", _dbms(name))
    for name in tiers:
        device = {"name": name, "description": "simulated", "tier": _tier(name), "path": ".", "dedicated": True}
        _write(root, f"devices/{name}", device)
    for name in workloads:
        load = {"name": name, "generator": "ycsb", "class": "write", "records": 100, "threads": 8, "parameters": {}}
        _write(root, f"workloads/{name}", load)
    for study in (NAME, f"{NAME}-new"):  # the second one stays without results
        _write(root, f"studies/{study}", {
            "name": study,
            "description": "a simulated campaign",
            "dbms": names,
            "devices": tiers,
            "workloads": dict.fromkeys(workloads),
            "knobs": {name: {knob: {"values": list(VALUES)} for knob in KNOBS} for name in names},
            "sampling": {"method": "lhs", "runs_per_round": 24 * BLOCKS, "block_runs": 24, "max_rounds": ROUNDS},
            "screening": {"top": SWEPT, "model": "anova"},
            "sweep": {"repeats": REPEATS},
        })  # fmt: skip
    return root / f"specs/studies/{NAME}.yaml"


def _tier(device: str) -> str:
    return {"hdd": "hdd", "sata": "sata_ssd", "nvme": "nvme_ssd"}[device.rstrip("2")]


def _dbms(name: str) -> dict[str, Any]:
    knobs = {
        knob: {
            "type": "integer", "range": [1, 64], "default": DEFAULT, "scale": "log", "apply": "restart",
            "mechanism": _MECHANISMS[number % len(_MECHANISMS)], "expect": "faster", "source": "https://example.org",
        }
        for number, knob in enumerate(KNOBS)
    }  # fmt: skip
    return {
        "name": name,
        "description": "simulated",
        "version_sql": "select version()",
        "writing": {"restart": {"sql": "set {knob} = {value}"}},
        "readback": {"each": "show {knob}"},
        "connection": {"binding": "knobscope.JdbcBinding", "properties": {"jdbc.url": "jdbc:sim"}},
        "loading": {"tables": ["create table t (a int)"]},
        "knobs": knobs,
    }


def _write(root: Path, name: str, content: dict[str, Any]) -> None:
    path = root / "specs" / f"{name}.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")


def load_specs(root: Path) -> StudySpecs:
    """Read the specs as every stage does."""
    return load_study(root / f"specs/studies/{NAME}.yaml", root, runnable=False)


def write_runs(root: Path, jobs: int) -> int:
    """Write plans, runs, fits and profiles of all cases, in the order in which Snakemake would; returns the runs."""
    specs, results = load_specs(root), root / "results" / NAME
    for device in specs.devices:
        write_sealed(results / "devices" / f"{device}.json", _profile(device))
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        return sum(sum(pool.map(partial(_write_phase, root, phase), specs.cases)) for phase in ("screen", "sweep"))


def _write_phase(root: Path, phase: str, case: Case) -> int:
    """Write the rounds of one phase of a case; a sweep's plan is younger than all fits of its DBMS."""
    specs, folder = load_specs(root), root / "results" / NAME / str(case)
    count = 0
    for round_ in range(ROUNDS if phase == "screen" else 1):
        plan = plan_screening(specs, case, round_) if phase == "screen" else plan_sweep(specs, case, KNOBS[:SWEPT])
        write_table(folder / "plan" / f"{phase}-{round_}.parquet", "plan", plan)
        write_sealed(folder / "prepared" / f"{phase}-{round_}.json", {"case": str(case)})
        for number, block in enumerate(dict.fromkeys(row["block_id"] for row in plan)):
            records = list(draw_block(case, [row for row in plan if row["block_id"] == block]))
            write_block(records, folder / "runs" / f"{phase}-{round_}-{number}")
            if number == 0 and round_ == 0:
                for record in records:
                    write_sealed(root / "results" / NAME / "store" / f"{record['run']['run_id']}.json", record)
            count += len(records)
        if phase == "screen":
            write_sealed(folder / "fit" / f"{round_}.json", _fit(round_))
    return count


def _fit(round_: int) -> dict[str, Any]:
    """Return a fit that names the knobs in the order of what they do; the last one stops."""
    importance = [
        {"knob": knob, "rank": rank, "rank_low": rank, "rank_high": rank, "importance": 1 / rank,
         "permutation": 1 / rank, "above_noise": rank <= SWEPT, "selected": rank <= SWEPT}
        for rank, knob in enumerate(KNOBS, 1)
    ]  # fmt: skip
    stops = round_ == ROUNDS - 1
    return {"model": "anova", "runs": 100 * (round_ + 1), "stopped": stops, "reason": "simulated", "points": [],
            "r2_splits": [0.95 if stops else 0.8] * 10, "importance": importance, "trustworthy": stops,
            "holdout_r2": 0.9, "reason_trust": "simulated"}  # fmt: skip


def _profile(device: str) -> dict[str, Any]:
    point = {"curve": "queue_depth", "pattern": "randread", "block_bytes": 4096, "queue_depth": 1, "iops": 5000.0}
    best = {**point, "queue_depth": 32, "iops": 45000.0, "bytes_per_s": 1.8e8}
    return {
        "device": device, "tier": _tier(device), "tier_rank": _RANKS[_tier(device)], "preferred_write_bytes": 16384,
        "write_unit_bytes": 16384, "saturating_depth": 16.0, "fsync_p50_us": 4e6 / TIERS[device] / 4,
        "random_read_iops_qd1": 5000.0, "random_read_iops_best": 45000.0, "best_queue_depth": 32,
        "random_sequential_ratio": 0.5,
        "curves": [point, best, {**best, "pattern": "randwrite", "iops": 30000.0}],
    }  # fmt: skip


def draw_block(case: Case, plan: list[PlanRow]) -> Iterator[RunRecord]:
    """Yield the records of a block: log-normal noise, a level of the block, and what its knobs do."""
    rng = np.random.default_rng(crc32(plan[0]["block_id"].encode()))
    level = rng.normal(0, 0.1)
    for row in plan:
        values = json.loads(row["configuration"])
        change = sum(_effect(case.device, number, values[knob]) for number, knob in enumerate(KNOBS))
        ops = TIERS[case.device] * float(np.exp(level + change + rng.normal(0, 0.03)))
        yield {"run": _run(case, row, ops, rng), **_io(ops, values, rng)}  # type: ignore[typeddict-item]


def _effect(device: str, number: int, value: int) -> float:
    """Return the natural-log change: each knob does less than the one before it, and the fourth turns round on NVMe."""
    sign = -1.0 if number % 3 == 0 or (number == 4 and device.startswith("nvme")) else 1.0
    return sign * 0.4 * 0.75**number * float(np.log2(value / DEFAULT))


def _run(case: Case, row: PlanRow, ops: float, rng: np.random.Generator) -> dict[str, Any]:
    names = ("block_id", "phase", "round", "position", "config_id", "is_sentinel", "repeat")
    mean = 8e6 / ops
    spread = np.exp(rng.normal(0, 0.05, 3))
    return {
        **{name: row[name] for name in names},  # type: ignore[literal-required]
        "run_id": hash_identity({"block": row["block_id"], "position": row["position"]}, 16),
        "study": NAME, "dbms": case.dbms, "device": case.device, "workload": case.workload, "dbms_version": "1",
        "tier": _tier(case.device), "workload_class": "write", "status": "ok", "session": row["block_id"],
        "started_at": "2026-11-20T21:03:00", "machine": "simulated", "window_s": 5.0, "overhead_s": 1.4,
        "operations": round(5 * ops), "failed_operations": 0, "throughput_ops": round(5 * ops) / 5,
        "latency_mean_us": mean, "latency_p50_us": 0.7 * mean * spread[0], "latency_p95_us": 2.6 * mean * spread[1],
        "latency_p99_us": 5 * mean * spread[2], "cpu_s": ops / 3000 * spread[0], "cpu_share": 0.4, "monitor": "bpf",
        "lost_events": 0, "unattributed_share": 0.01,
    }  # fmt: skip


def _io(ops: float, values: dict[str, int], rng: np.random.Generator) -> dict[str, list[dict[str, Any]]]:
    """Return rows of the tables about a run: about as many as a run of five seconds has."""
    noise = np.exp(rng.normal(0, 0.03, 50)).tolist()
    writes, reads = round(5 * ops * noise[0]) + 40, round(3 * ops * noise[1]) + 40
    flushes = round(writes / values["knob_00"])
    requests = {"write": writes, "read": reads, "flush": flushes}
    size = 1024 * values["knob_01"]
    edges = [90 * 2 ** (step / 4) for step in range(12)]
    return {
        "intervals": [
            {"t_s": float(t + 1), "ops": ops * noise[2 + t], "failed": 0, "latency_p95_us": 2e7 / ops * noise[8 + t],
             "latency_p99_us": 4e7 / ops * noise[14 + t]}
            for t in range(5)
        ],
        "phases": [{"phase": name, "seconds": 0.2} for name in ("restore", "start", "connect", "collect", "stop")],
        "effective_values": [
            {"knob": knob, "requested": str(value), "effective": str(value)} for knob, value in values.items()
        ],
        "io_profile": [
            {"op": op, "requests": count, "bytes": count * size if op != "flush" else 0,
             "aligned_requests": round(count * 0.8), "sequential_requests": round(count * 0.4),
             "sequential_share": 0.4, "fua": 0}
            for op, count in requests.items()
        ],
        "io_sizes": [
            {"op": op, "bytes": size * times, "requests": requests[op] // (2 * times)}
            for op in ("read", "write") for times in (1, 2, 4)
        ],
        "queue_depth": [
            {"queue": queue, "depth": depth, "time_ns": round(1e9 * noise[20 + depth] / (1 + depth))}
            for queue in (-1, 0) for depth in range(0 if queue < 0 else 1, 9)
        ],
        "io_latency": [
            {"op": op, "low_us": edge, "high_us": edge * 2**0.25, "requests": round(requests[op] / 12)}
            for op in ("read", "write") for edge in edges
        ],
        "io_series": [
            {"t_s": step / 4, "op": op,
             "requests": 0 if op == "write" and step % 4 == 0 else round(requests[op] / 20),
             "bytes": size, "depth": 2.0, "latency_mean_us": 1e6 / ops * noise[30 + step % 16]}
            for step in range(1, 21) for op in ("read", "write")
        ],
        "files": [
            {"file": file, "role": role, "op": op, "requests": round(requests[op] * share), "bytes": size,
             "address_requests": 0, "sequential_share": order, "strided_share": 0.0, "random_share": 1 - order}
            for file, role, op, share, order in (
                ("base/1", "data", "write", 0.4, 0.1), ("base/1", "data", "read", 1.0, 0.1),
                ("log/1", "log", "write", 0.6, 0.9))
        ],
    }  # fmt: skip


def write_table_of_runs(path: Path, runs: int) -> None:
    """Write so many runs of a sweep as the CSV that `knobscope import` reads: blocks of 33 runs."""
    header = ["block", "dbms", "device", "tier", "workload", "knob", "value", "baseline", "mechanism", "throughput_ops"]
    header += ["latency_p95_us", "window_s", "cpu_s"]
    rng = np.random.default_rng(1)
    values = [(knob, value) for knob in KNOBS[:6] for value in VALUES if value != DEFAULT]
    settings = [(None, DEFAULT), *values[:15], (None, DEFAULT), *values[15:], (None, DEFAULT)]
    cases = [(f"simdb{d}", device, f"load{w}") for d in range(DBMS) for device in TIERS for w in range(WORKLOADS)]
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(header)
        for row in range(runs):
            block, position = divmod(row, len(settings))
            if position == 0:
                inner = rng.permutation(np.r_[1:16, 17:32])
                order = [0, *inner[:15], 16, *inner[15:], 32]
                number, case = divmod(block, len(cases))
            dbms, device, workload = cases[case]
            knob, value = settings[order[position]]
            change = 0.0 if knob is None else _effect(device, KNOBS.index(knob), value)
            ops = TIERS[device] * np.exp(change + rng.normal(0, 0.03))
            about = (knob, value, DEFAULT, _MECHANISMS[KNOBS.index(knob)]) if knob else ("", "", "", "")
            figures = (f"{ops:.3f}", f"{2e7 / ops:.3f}", 5, f"{ops / 3000:.4f}")
            writer.writerow([f"b{number}", dbms, device, _tier(device), workload, *about, *figures])
