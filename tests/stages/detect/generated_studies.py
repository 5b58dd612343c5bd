"""Studies with known truth: specs as YAML, plans of the plan stage, runs drawn from a model, written as parquet."""

import json
from collections.abc import Callable, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from zlib import crc32

import duckdb
import numpy as np
import pandas as pd
import yaml
from generated_knobs import CHOICES, KNOBS, SOURCE, SPECIAL

from knobscope.durable_files import write_sealed
from knobscope.specs import Case, StudySpecs, load_study, value_text
from knobscope.stages.detect import StudyFiles, run_rules
from knobscope.stages.plan import plan_sweep
from knobscope.tables import TABLES, write_tables

Tables = dict[str, list[dict[str, Any]]]
_OF_RUNS = ("io_profile", "io_latency", "queue_depth", "io_series", "files", "file_access", "io_modes", "waits")

TIERS = {"hdd": ("hdd", 1), "nvme": ("nvme_ssd", 3), "nvme2": ("nvme_ssd", 3)}


def tier_of(device: str) -> tuple[str, int]:
    """Return tier and rank of a device; `nvme-7` is one like `nvme`."""
    return TIERS[device.split("-", maxsplit=1)[0]]


@dataclass(frozen=True)
class Truth:
    """What a value does against the sentinel: natural-log ratios, and differences of shares."""

    throughput: float = 0.0
    cpu: float = 0.0
    writes: float = 0.0
    unaligned: float = 0.0
    write_run: float = 0.0
    read_run: float = 0.0
    depth_one: float = 0.0
    flushes: float = 0.0  # per operation
    tail: float = 0.0  # of the 99th percentile of latency, and half as much of the 95th
    reads: float = 0.0
    read_bytes: float = 0.0  # of one read
    read_us: float = 0.0  # of one read
    waits: tuple[tuple[str, float], ...] = ()  # reason and microseconds per operation


@dataclass(frozen=True)
class Use:
    """How a file is used in every run: requests, and what share of them is in order, as called and on the device."""

    file: str
    role: str
    table: str | None = None
    reads: int = 0
    writes: int = 0
    logical: float = 0.5
    device: float = 0.5
    call_bytes: int = 4096


#: Orders are read and written, customers only read; the log's files have another name in every run.
USES = (
    Use("base/1", "data", "orders", reads=1500, writes=1000, logical=0.6, device=0.6),
    Use("base/2", "data", "customers", reads=2500),
    Use("log/", "log", writes=4000, logical=0.95, device=0.9),
    Use("journal", "journal", writes=900),
)


@dataclass
class StudyMaker:
    """Makes the files of one study below `root`."""

    root: Path
    devices: Sequence[str] = ("nvme",)
    of_device: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # device -> fields that differ there
    repeats: int = 2
    seed: int = 0
    noise: float = 0.02
    share_noise: float = 0.01  # of shares of requests
    block_noise: float = 0.1  # blocks differ by as much, and no effect may come from it
    levels: Mapping[str, float] = field(default_factory=dict)  # device -> natural-log level of its throughput
    dedicated: bool = True
    profiles: bool = True
    preferred: int | None = 16384
    saturating_depth: float | None = 16.0
    write_iops: float = 3000.0
    device_gain: float = 9.0  # random reads at the best depth, against depth one
    depth_one: float = 0.5  # share of the busy time, at the sentinel
    busy: float = 0.8
    flushes: float = 0.2  # per operation, at the sentinel
    flush_us: float = 1000.0  # of the devices
    unit_us: float | None = None  # what they take to fill a unit that a write filled in part
    queue_loads: Sequence[float] = (1.0,)
    queue_one: float | None = None  # share of each hardware queue's busy time with one request; as all, if not named
    truth: Mapping[tuple[str, ...], Truth] = field(default_factory=dict)  # (knob, value) or (device, knob, value)
    pairs: Sequence[tuple[str, str]] = ()  # of knobs, swept together
    extra: Mapping[tuple[str, str], float] = field(default_factory=dict)  # what values of a pair add to their sum
    columns: Mapping[str, Any] = field(default_factory=dict)  # what all rows of `runs` say instead
    tweak: Callable[[dict[str, Any]], None] | None = None  # changes a row of `runs`; may pull it by its status
    knobs: Sequence[str] = tuple(name for name in KNOBS if name not in SPECIAL)
    dbms: Sequence[str] = ("simdb",)
    unswept: Sequence[str] = ()  # knobs that all DBMSs but the first have, and the study does not vary there
    screened: Sequence[str] = ()  # knobs that screening varied in all DBMSs, and selected none of
    read_order: str | None = None  # that the workload declares
    uses: Sequence[Use] = USES
    calls: bool = True  # whether system calls were watched
    batch: float | None = None  # requests per asynchronous call; None: all calls are synchronous
    interference: float = 0.0  # natural-log ratio of read latency, while writing against not
    read_us: float = 200.0
    reads_per_op: float | None = None  # None: 4,000 a run, whatever the operations do
    tail_noise: float = 0.0  # of the 99th percentile of latency, beyond that of throughput
    stalls: float = 0.0  # share of runs in which something else makes it several times as long
    pauses: bool = True  # whether there are moments without writes
    threads: int = 2  # of the client
    sessions: int | None = None  # threads that serve the clients; None: one each; 0: no thread is known to
    waits: tuple[tuple[str, float], ...] = ()  # of sessions at the sentinel, as in Truth; none: not watched
    cpu_us: float = 800.0  # per operation, at the sentinel

    def knobs_of(self, dbms: str) -> list[str]:
        """Return the knobs that the study varies in a DBMS."""
        return [name for name in self.knobs if dbms == self.dbms[0] or name not in self.unswept]

    def specs(self) -> StudySpecs:
        """Write the specs, and read them as every stage does."""
        knobs = {name: {"apply": "restart", "source": SOURCE, **KNOBS[name]} for name in self.knobs}
        for name in self.dbms:
            self._write(
                f"dbms/{name}",
                {
                    "name": name,
                    "description": "a model",
                    "version_sql": "select version()",
                    "writing": {"restart": {"sql": "set {knob} = {value}"}},
                    "readback": {"each": "show {knob}"},
                    "connection": {"binding": "knobscope.JdbcBinding", "properties": {"jdbc.url": "jdbc:sim"}},
                    "loading": {"tables": ["create table t (a int)"]},
                    "knobs": knobs,
                },
            )
        for device in self.devices:
            spec = {"name": device, "description": device, "tier": tier_of(device)[0], "path": "results"}
            self._write(f"devices/{device}", {**spec, "dedicated": self.dedicated})
        workload = {"name": "ycsb-a", "generator": "ycsb", "class": "write", "records": 100, "parameters": {}}
        workload["threads"] = self.threads
        self._write("workloads/ycsb-a", workload | ({"read_order": self.read_order} if self.read_order else {}))
        self._write(
            "studies/sim",
            {
                "name": "sim",
                "description": "a model",
                "dbms": list(self.dbms),
                "devices": list(self.devices),
                "workloads": {"ycsb-a": None},
                "knobs": {
                    dbms: {name: deepcopy(CHOICES[name]) for name in self.knobs_of(dbms)} for dbms in self.dbms
                },  # copies: YAML would write the second one as an alias
                "sweep": {"repeats": self.repeats},
            },
        )
        return load_study(self.root / "specs/studies/sim.yaml", self.root, runnable=False)

    def _write(self, name: str, content: Any) -> None:
        path = self.root / "specs" / f"{name}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(yaml.safe_dump(content, sort_keys=False))

    def files(self, specs: StudySpecs) -> StudyFiles:
        """Write plans, runs and device profiles of all cases."""
        results, rng = self.root / "results" / "sim", np.random.default_rng(self.seed)
        tables: Tables = {name: [] for name in ("plan", "runs", *_OF_RUNS)}
        for case in specs.cases:
            rows = plan_sweep(specs, case, self.knobs_of(case.dbms), self.pairs)
            tables["plan"] += rows
            for block_id in dict.fromkeys(row["block_id"] for row in rows):
                self._on(case.device)._measure(tables, case, [row for row in rows if row["block_id"] == block_id], rng)
        write_tables(results, tables)
        devices = []
        for device in self.devices:
            if self._on(device).profiles:
                devices.append(results / "devices" / f"{device}.json")
                devices[-1].parent.mkdir(exist_ok=True)
                write_sealed(devices[-1], self._on(device)._profile(device))
        fits = [self._write_fit(results / str(case) / "fit/0.json") for case in specs.cases if self.screened]
        return StudyFiles([results], [results / "plan.parquet"], fits, devices)

    def _on(self, device: str) -> "StudyMaker":
        """Return the maker of what is measured on a device."""
        return replace(self, **self.of_device.get(device, {}))

    def _write_fit(self, path: Path) -> Path:
        """Write what a round of screening would have said, had it found nothing above noise."""
        path.parent.mkdir(parents=True, exist_ok=True)
        knob = {"rank_low": 1, "rank_high": len(self.screened), "importance": 0.0, "permutation": 0.0}
        knob |= {"above_noise": False, "selected": False}
        fit = {"stopped": True, "reason": "", "runs": 20, "model": "anova", "terms": [], "r2_splits": [0.1]}
        fit |= {"points": [], "holdout_r2": 0.1, "trustworthy": False, "reason_trust": "", "fitted": None}
        ranked = [{"knob": name, "rank": rank, **knob} for rank, name in enumerate(self.screened, 1)]
        write_sealed(path, {**fit, "importance": ranked, "stable_rounds": 0})
        return path

    def _profile(self, device: str) -> dict[str, Any]:
        tier, rank = tier_of(device)
        point = {"curve": "queue_depth", "pattern": "randread", "block_bytes": 4096, "queue_depth": 1, "iops": 5000.0}
        writes = [{**point, "pattern": "randwrite", "iops": self.write_iops, "bytes_per_s": 4096 * self.write_iops}]
        return {
            "device": device,
            "tier": tier,
            "tier_rank": rank,
            "preferred_write_bytes": self.preferred,
            "write_unit_bytes": self.preferred,
            "saturating_depth": self.saturating_depth,
            "fsync_p50_us": self.flush_us,
            "write_unit_us": self.unit_us,
            "random_read_iops_qd1": 5000.0,
            "random_read_iops_best": 5000.0 * self.device_gain,
            "best_queue_depth": 32,
            "curves": [point, {**point, "iops": 5000.0 * self.device_gain, "bytes_per_s": 1.8e8}, *writes],
        }

    def _measure(self, tables: Tables, case: Case, plan: list[dict[str, Any]], rng: np.random.Generator) -> None:
        """Add the runs of a block."""
        sentinel = json.loads(next(row["configuration"] for row in plan if row["is_sentinel"]))
        level = self.levels.get(case.device, 0.0) + rng.normal(0, self.block_noise)
        for row in plan:
            values = json.loads(row["configuration"]).items()
            change = tuple((name, value_text(value)) for name, value in values if value != sentinel[name])
            truth = Truth()
            for knob, value in change:
                keys = ((case.dbms, knob, value), (case.device, knob, value), (knob, value))
                truth = next((self.truth[key] for key in keys if key in self.truth), truth)
            if tuple(sorted(knob for knob, _ in change)) in self.pairs:
                alone = [self.truth.get(one, Truth()).throughput for one in change]
                truth = Truth(sum(alone) + self.extra.get(tuple(value for _, value in sorted(change)), 0.0))
            run = self._run(row, case, truth, level, rng)
            run.update(self.columns)
            if self.tweak:
                self.tweak(run)
            tables["runs"].append(run)
            if run["status"] == "ok":
                self._watch(run, truth, tables, rng)

    def _run(
        self, row: dict[str, Any], case: Case, truth: Truth, level: float, rng: np.random.Generator
    ) -> dict[str, Any]:
        names = ("block_id", "phase", "round", "position", "config_id", "is_sentinel", "repeat")
        throughput = 1000 * np.exp(level + truth.throughput + rng.normal(0, self.noise))
        operations = int(throughput * 10)
        own = np.random.default_rng(crc32(f"{self.seed} {case} {row['block_id']} {row['position']}".encode()))
        tail = truth.tail + own.normal(0, self.tail_noise) + own.exponential(1.5) * (own.random() < self.stalls)
        return {
            **{name: row[name] for name in names},
            "run_id": f"{row['block_id']}/{row['position']}",
            "study": "sim",
            **case._asdict(),
            "tier": tier_of(case.device)[0],
            "status": "ok",
            "session": "one",
            "window_s": 10.0,
            "operations": operations,
            "throughput_ops": throughput,
            "latency_p95_us": 1e6 / throughput * np.exp(tail / 2 + rng.normal(0, self.noise)),
            "latency_p99_us": 2e6 / throughput * np.exp(tail + rng.normal(0, self.noise)),
            "cpu_s": operations * self.cpu_us / 1e6 * np.exp(truth.cpu + rng.normal(0, self.noise)),
            "machine_cpu_share": 0.3,
            "monitor": "bpf",
            "lost_events": 0,
            "unattributed_share": 0.0,
        }

    def _watch(
        self,
        run: dict[str, Any],
        truth: Truth,
        tables: Tables,
        rng: np.random.Generator,
    ) -> None:
        """Add what the monitor saw; procfs records totals only."""
        run_id, is_bpf = run["run_id"], run["monitor"] == "bpf"

        def share(of: int, at: float) -> int | None:
            return int(of * min(1, max(0, at + rng.normal(0, self.share_noise)))) if is_bpf else None

        writes = int(run["operations"] * 2 * np.exp(truth.writes + rng.normal(0, self.noise)))
        reads = 4000 if self.reads_per_op is None else run["operations"] * self.reads_per_op * np.exp(truth.reads)
        for op, requests, run_share in (("write", writes, truth.write_run), ("read", int(reads), truth.read_run)):
            size = 4096 * np.exp(truth.read_bytes) if op == "read" else 4096
            tables["io_profile"].append(
                {
                    "run_id": run_id,
                    "op": op,
                    "requests": requests,
                    "bytes": int(requests * size),
                    "aligned_requests": share(requests, 0.8 - (truth.unaligned if op == "write" else 0)),
                    "sequential_requests": share(requests, 0.3 + run_share),
                }
            )
        if not is_bpf:
            return
        noise = np.random.default_rng(crc32(run_id.encode())).normal(0, self.noise)
        read_us = self.read_us * np.exp(truth.read_us + noise)
        flushes = int(run["operations"] * max(0.0, self.flushes + truth.flushes) * np.exp(noise))
        tables["io_profile"].append({"run_id": run_id, "op": "flush", "requests": flushes, "bytes": 0})
        for op, us, count in (("read", read_us, int(reads)), ("flush", self.flush_us, flushes)):
            tables["io_latency"].append({"run_id": run_id, "op": op, "low_us": us, "high_us": us, "requests": count})
        one = min(1.0, max(0.0, self.depth_one + truth.depth_one + rng.normal(0, 0.002)))
        depths = {0: 1 - self.busy, 1: self.busy * one, 4: self.busy * (1 - one)}
        for depth, part in ((depth, part) for depth, part in depths.items() if part > 0):  # as the monitor does
            tables["queue_depth"].append({"run_id": run_id, "queue": -1, "depth": depth, "time_ns": int(part * 1e10)})
        for queue, load in enumerate(self.queue_loads):
            single = one if self.queue_one is None else self.queue_one
            for depth, part in ((1, single), (4, (1 - single) / 4)):
                row = {"run_id": run_id, "queue": queue, "depth": depth, "time_ns": int(load * part * 1e9)}
                tables["queue_depth"].append(row)
        if self.batch is not None:
            for mode, calls, submits in (("libaio", 4000, round(4000 / self.batch)), ("sync", 1000, 1000)):
                row = {"run_id": run_id, "op": "read", "mode": mode, "calls": calls, "submits": submits, "polled": 0}
                tables["io_modes"].append(row)
        tables["waits"] += self._waits(run, truth, rng)
        if run["is_sentinel"]:  # nobody asks for those of others
            tables["io_series"] += self._series(run, rng)
        for use in self.uses:
            for op, requests in (("read", use.reads), ("write", use.writes)):
                if requests:
                    self._use(run, use, op, requests, tables, rng)

    def _waits(self, run: dict[str, Any], truth: Truth, rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return where the time of sessions went, and that of a thread in the background, which counts for nothing."""
        changes, rows, own = dict(truth.waits), [], "any" if self.sessions == 0 else "session"
        for reason, micros in self.waits:
            time = run["operations"] * (micros + changes.get(reason, 0.0)) * np.exp(rng.normal(0, self.noise))
            for name, threads, time_us in ((own, self.sessions or self.threads, time), ("checkpointer", 1, 1e6)):
                row = {"run_id": run["run_id"], "thread_class": name, "reason": reason, "time_us": time_us}
                rows.append(row | {"threads": threads, "waits": 1, "through_us": 0.0, "longest_us": 1.0})
        return rows

    def _series(self, run: dict[str, Any], rng: np.random.Generator) -> list[dict[str, Any]]:
        """Return the intervals of a run: reads in all, writes in every other one."""
        rows = []
        for step in range(1, 41):
            writes = 80 if step % 2 else 0 if self.pauses else 60
            latency = self.read_us * np.exp((self.interference if writes else 0) + rng.normal(0, 0.2))
            row = {"run_id": run["run_id"], "t_s": step / 4, "bytes": 0, "depth": 1.0}
            rows.append({**row, "op": "read", "requests": 100, "latency_mean_us": latency})
            if writes:
                rows.append({**row, "op": "write", "requests": writes, "latency_mean_us": 50.0})
        return rows

    def _use(
        self, run: dict[str, Any], use: Use, op: str, requests: int, tables: Tables, rng: np.random.Generator
    ) -> None:
        file = use.file + (run["run_id"] if use.role == "log" else "")
        about = {"run_id": run["run_id"], "file": file, "role": use.role, "table_name": use.table, "op": op}
        for table, count, truth in (("files", "requests", use.device), ("file_access", "calls", use.logical)):
            share = min(1.0, max(0.0, truth + rng.normal(0, 0.01)))
            order = {"sequential_share": share, "strided_share": 0.0, "random_share": 1 - share}
            if table == "files" or self.calls:
                size = requests * (4096 if table == "files" else use.call_bytes)
                tables[table].append({**about, count: requests, "bytes": size, **order})


@dataclass
class Study:
    """A study that was made, its database, and what the rules say of it."""

    specs: StudySpecs
    files: StudyFiles
    database: Path
    _judged: dict[tuple[str, ...], pd.DataFrame] = field(default_factory=dict, init=False)

    def query(self, sql: str) -> pd.DataFrame:
        """Return the rows of a query."""
        with duckdb.connect(str(self.database), read_only=True) as connection:
            return connection.execute(sql).df()

    def judge(self, rule: str, *before: str) -> pd.DataFrame:
        """Return the findings of one rule, after others whose findings it may ask for."""
        if (rule, *before) not in self._judged:
            rules = {name: self.specs.rules[name] for name in (*before, rule)}
            with duckdb.connect(str(self.database), read_only=True) as connection:
                found = run_rules(connection, replace(self.specs, rules=rules))
            rows = [row for row in found if row["rule"] == rule]
            self._judged[rule, *before] = pd.DataFrame(rows, columns=list(TABLES["findings"]))
        return self._judged[rule, *before].copy()


def verdicts(findings: pd.DataFrame) -> dict[tuple[str, str], str]:
    return {(row.knob, row.value): row.verdict for row in findings.itertuples()}


def only_row(findings: pd.DataFrame) -> Any:
    assert len(findings) == 1
    return next(findings.itertuples())
