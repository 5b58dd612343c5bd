"""Runs of a DBMS whose causes are known: a group commit in which a flush begins as soon as somebody waits, and others.

Each kind of case has a model of the time of an operation. The truth of a value is the model without the blamed cost:
the share of the difference in time per operation that is gone then. What a run counts is what an import can hold.
"""

import heapq
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

import numpy as np

WINDOW_S = 60.0
#: Operations of a model's run, and those before that fill the queue.
OPERATIONS, FIRST = 3000, 300
UNIT_BYTES, WRITE_BYTES = 16384, 4096
#: Times by which costs of the same kind differ from each other.
JITTER = 0.3

Rows = list[dict[str, Any]]
Tables = dict[str, Rows]


@dataclass(frozen=True)
class Load:
    """Clients that compute, then commit; `cores` serve them in turn (None: each client has its own)."""

    clients: int
    cpu_us: float
    flush_us: float
    flushes: int = 1  # of a group; 0: nobody waits for one
    cores: int | None = None

    def run(self, rng: np.random.Generator) -> tuple[float, float, float]:
        """Return microseconds and flushes per operation, and the share of the time in which a flush is under way."""
        cpu = self.cpu_us * rng.lognormal(-(JITTER**2) / 2, JITTER, OPERATIONS + FIRST + 2 * self.clients)
        flush = self.flushes * self.flush_us * rng.lognormal(-(JITTER**2) / 2, JITTER, OPERATIONS + FIRST + 1)
        cores = [0.0] * min(self.cores or self.clients, self.clients)
        waiting: list[float] = []
        drawn = completed = groups = 0
        free = began = busy = 0.0

        def compute(now: float) -> None:
            nonlocal drawn
            ready = max(now, cores[0]) + cpu[drawn]
            heapq.heapreplace(cores, ready)
            heapq.heappush(waiting, ready)
            drawn += 1

        for _ in range(self.clients):
            compute(0.0)
        counted = 0
        while completed < OPERATIONS + FIRST:
            start = max(free, waiting[0])
            free = start + flush[groups]
            size = 0
            while waiting and waiting[0] <= start:
                heapq.heappop(waiting)
                size += 1
            for _ in range(size):
                compute(free)
            if completed < FIRST <= completed + size:
                began, busy, counted, first = free, 0.0, 0, completed + size
            completed, groups = completed + size, groups + 1
            if completed > FIRST and free > began:
                busy, counted = busy + free - start, counted + 1
        operations = completed - first
        return (free - began) / operations, self.flushes * counted / operations, busy / (free - began)


@dataclass(frozen=True)
class Facts:
    """What runs of a setting show, without noise, by second; `without_us` is the time per operation without a cost."""

    us: float  # per operation
    cpu_us: float  # per operation
    without_us: dict[str, float] = field(default_factory=dict)  # rule -> without what it blames
    flushes: float = 0.0
    flush_us: float = 1000.0
    whole: float = 0.0  # writes that fill units
    partly: float = 0.0  # writes that do not
    in_order: float = 0.3  # share of the writes
    waited: float | None = 1.0  # share of the writes that somebody waits for; None: the table has no such column
    reads: float = 0.0
    busy: float = 0.5
    depth_one: float = 0.5


@dataclass(frozen=True)
class Case:
    """A default configuration and values of a knob; `blames` are the rules that are right where they find something."""

    kind: str
    number: int
    clients: int
    default: Facts
    values: Sequence[Facts]
    flush_us: float = 1000.0
    unit_us: float = 100.0
    gain: float = 1.0  # of reads at depth
    ability: float = 50000.0  # writes per second
    cores: int | None = None  # of the machine; None: one for each client
    is_confined: bool | None = False  # whether clients wait for one request at a time: the truth of io_parallelism
    for_order: bool = False  # whether CPU is spent for the sake of order

    @property
    def device(self) -> str:
        """Its device, which no other case has."""
        return f"{self.kind}-{self.number}".replace("_", "-")

    @property
    def workload(self) -> str:
        """Its workload, with as many clients."""
        return f"load-{self.clients}"

    def share(self, rule: str, value: int | None) -> float:
        """Return the share of the difference (None: of the default's time) that is gone without what a rule blames."""
        before = self.default
        if value is None:
            return 1 - before.without_us.get(rule, before.us) / before.us
        after = self.values[value]
        avoided_us = after.without_us.get(rule, after.us) - before.without_us.get(rule, before.us)
        return 1 - avoided_us / (after.us - before.us)


def _commits(load: Load, rng: np.random.Generator) -> Facts:
    """Return what a group commit shows: a write for every commit, and one of 64 KiB now and then."""
    us, flushes, busy = load.run(rng)
    free, *_ = replace(load, flush_us=0.0).run(rng)
    per_s = 1e6 / us
    return Facts(
        us=us, cpu_us=load.cpu_us, without_us={"flush": free, "default_profile": free}, flushes=flushes * per_s,
        flush_us=load.flush_us, partly=flushes * per_s, whole=0.1 * per_s, in_order=0.8,
        busy=min(1.0, busy),
    )  # fmt: skip


def _group_cpu(rng: np.random.Generator, number: int) -> Case:
    """Values that cost CPU only: fewer commits share a flush."""
    flush_us = float(rng.choice([60, 300, 1200, 8000]))
    clients = int(rng.choice([4, 8, 16, 32]))
    load = Load(clients, flush_us * rng.uniform(0.5, 3), flush_us, cores=[None, None, max(2, clients // 4)][number % 3])
    return _of_loads("group_cpu", number, load, [replace(load, cpu_us=load.cpu_us * more) for more in (2, 3.5, 6)], rng)


def _group_flush(rng: np.random.Generator, number: int) -> Case:
    """A default that need not flush, or flushes a group once, and values that flush (more)."""
    flush_us = float(rng.choice([300, 1200, 8000]))
    load = Load(int(rng.choice([1, 2, 4, 8, 16])), flush_us * rng.uniform(0.1, 1), flush_us, flushes=number % 2)
    return _of_loads("group_flush", number, load, [replace(load, flushes=load.flushes + more) for more in (1, 2)], rng)


def _slow_flush(rng: np.random.Generator, number: int) -> Case:
    """Values that make each flush take longer."""
    flush_us = float(rng.choice([60, 300, 1200]))
    load = Load(int(rng.choice([1, 2, 4, 8])), flush_us * rng.uniform(0.5, 2), flush_us)
    return _of_loads("slow_flush", number, load, [replace(load, flush_us=flush_us * more) for more in (2, 4)], rng)


def _of_loads(kind: str, number: int, load: Load, changed: Sequence[Load], rng: np.random.Generator) -> Case:
    values = [_commits(other_load, rng) for other_load in changed]
    return Case(kind, number, load.clients, _commits(load, rng), values, load.flush_us, 0.2 * load.flush_us,
                ability=1e6, cores=load.cores)  # fmt: skip


def _slower(before: Facts, more: float, clients: int = 4) -> Facts:
    """Return the facts where CPU makes operations slower: each of the clients computes for longer."""
    us = before.us * more
    return replace(
        before, us=us, cpu_us=before.cpu_us + clients * (us - before.us),
        without_us={rule: without + us - before.us for rule, without in before.without_us.items()},
    )  # fmt: skip


def _background(rng: np.random.Generator, number: int) -> Case:
    """Writes and flushes of the background stay as many per second while CPU slows the foreground.

    The background writes in order and fills units in part, the foreground writes whole units anywhere.
    """
    us, rate, whole = rng.uniform(150, 600), rng.uniform(400, 900), rng.uniform(0.05, 0.3)
    flushes = rng.uniform(20, 200)

    def facts(more: float) -> Facts:
        foreground = whole * 1e6 / us / more
        before = Facts(us, 4 * us * 0.7, flushes=flushes, partly=rate, whole=foreground,
                       waited=[0.3, None][number % 2], in_order=0.9 * rate / (rate + foreground),
                       busy=min(0.9, flushes / 1000 + rate * 1e-4))  # fmt: skip
        return _slower(before, more)

    return Case(
        "background", number, 4, facts(1), [facts(more) for more in (1.3, 1.8, 3)], unit_us=rng.uniform(50, 300)
    )


def _unwaited(us: float, rate: float, share: float, number: int, rng: np.random.Generator) -> Facts:
    """Return what writes show that nobody waits for: so many per second, a share of which fills units in part."""
    waited, busy = [0, None][number % 2], rng.uniform(0.1, 0.4)
    partly, whole = share * rate, (1 - share) * rate
    return Facts(us, 4 * us * 0.7, flushes=30, partly=partly, whole=whole, waited=waited, busy=busy)


def _same_size(rng: np.random.Generator, number: int) -> Case:
    """Values that write more requests of the same size, which nobody waits for, and need more CPU."""
    us = rng.uniform(150, 600)
    rate, share = rng.uniform(0.2, 1) * 1e6 / us, rng.uniform(0.3, 1)
    before = _unwaited(us, rate, share, number, rng)
    values = []
    for more in (1.2, 1.5, 2.0):
        writes = more * rng.uniform(1.3, 2)  # as many times as many per operation
        slow, factor = _slower(before, more), writes / more
        busy = min(0.9, before.busy * max(1.0, factor))
        values.append(replace(slow, partly=before.partly * factor, whole=before.whole * factor, busy=busy))
    return Case("same_size", number, 4, before, values, unit_us=rng.uniform(50, 300))


def _page_cache(rng: np.random.Generator, number: int) -> Case:
    """Values with which the page cache writes back other sizes, which nobody waits for, and that need more CPU."""
    us = rng.uniform(150, 600)
    rate, share = rng.uniform(0.2, 0.8) * 1e6 / us, rng.uniform(0.1, 0.3)
    before = _unwaited(us, rate, share, number, rng)
    values = []
    for more in (1.2, 1.5, 2.0):
        after, total = min(0.95, share + rng.uniform(0.3, 0.6)), rate / more * rng.uniform(1, 1.5)
        busy = min(0.9, before.busy * rng.uniform(1, 1.3))
        values.append(replace(_slower(before, more), partly=after * total, whole=(1 - after) * total, busy=busy))
    return Case("page_cache", number, 4, before, values, unit_us=rng.uniform(50, 300))


def _units(rng: np.random.Generator, number: int) -> Case:
    """Values whose writes fill units in part, each of which a client waits for."""
    unit_us, write_us, cpu_us = rng.uniform(300, 2000), rng.uniform(50, 150), rng.uniform(100, 300)
    clients, flush_us = int(rng.choice([1, 1, 2])), rng.uniform(50, 150)

    def facts(partly: float, writes: float) -> Facts:
        # Clients take turns on the device, whose time they share.
        on_device = flush_us + writes * (write_us + partly * unit_us)
        us = max(on_device, (cpu_us + on_device) / clients)
        free = max(on_device - writes * partly * unit_us, (cpu_us + on_device - writes * partly * unit_us) / clients)
        per_s = 1e6 / us
        return Facts(us, cpu_us, {"io_size": free, "default_profile": cpu_us / clients}, flushes=per_s,
                     flush_us=flush_us + writes * partly * unit_us,
                     partly=partly * writes * per_s, whole=(1 - partly) * writes * per_s,
                     busy=min(1.0, on_device / us), depth_one=0.97)  # fmt: skip

    values = [facts(0.5, 1), facts(1, 1), facts(1, 2)]
    return Case("units", number, clients, facts(0.0, 1), values, flush_us, unit_us, is_confined=None)


def _seldom_busy(rng: np.random.Generator, number: int) -> Case:
    """One request at a time on a device that is busy for 14 % of the time and does many times as much at depth."""
    us = rng.uniform(150, 600)
    before = Facts(us, 8 * us * 0.8, reads=700, busy=rng.uniform(0.08, 0.2), depth_one=0.99, flushes=1)
    return Case("seldom_busy", number, 8, before, [_slower(before, 1.1, 8)], gain=rng.uniform(4, 10))


def _one_at_a_time(rng: np.random.Generator, number: int) -> Case:
    """Clients that wait for reads, one at a time behind a lock, whatever the knob says."""
    us = rng.uniform(150, 600)
    busy = rng.uniform(0.7, 0.95)
    before = Facts(
        us, 8 * us * 0.1, {"default_profile": us * (1 - busy)}, reads=1e6 / us, busy=busy, depth_one=0.99, flushes=1
    )
    return Case(
        "one_at_a_time", number, 8, before, [_slower(before, 1.1, 8)], gain=rng.uniform(4, 10), is_confined=True
    )


def _order_for_nothing(rng: np.random.Generator, number: int) -> Case:
    """Values that spend CPU to make writes sequential, on a device that does random ones as fast."""
    us = rng.uniform(150, 600)
    rate = rng.uniform(0.5, 2) * 1e6 / us
    before = Facts(us, 2 * us * 0.6, flushes=5, partly=0.2 * rate, whole=0.8 * rate, in_order=0.2, busy=0.3)
    values = [
        replace(_slower(before, more, 2), partly=0.2 * rate / more, whole=0.8 * rate / more, in_order=after)
        for more, after in ((1.3, 0.5), (1.6, 0.8), (2.0, 0.9))
    ]
    return Case("order_for_nothing", number, 2, before, values, for_order=True)


#: Kinds in which no rule is right to blame the device, and those in which one is.
FALSE_KINDS: dict[str, Callable[[np.random.Generator, int], Case]] = {
    "group_cpu": _group_cpu,
    "background": _background,
    "same_size": _same_size,
    "page_cache": _page_cache,
    "seldom_busy": _seldom_busy,
}
TRUE_KINDS: dict[str, Callable[[np.random.Generator, int], Case]] = {
    "group_flush": _group_flush,
    "slow_flush": _slow_flush,
    "units": _units,
    "one_at_a_time": _one_at_a_time,
    "order_for_nothing": _order_for_nothing,
}
KINDS = {**FALSE_KINDS, **TRUE_KINDS}


def draw_cases(kind: str, count: int, seed: int) -> list[Case]:
    """Return cases of a kind."""
    rng = np.random.default_rng([seed, list(KINDS).index(kind)])
    return [KINDS[kind](rng, number) for number in range(count)]


def tables_of(cases: Sequence[Case], noise: float, seed: int, *, has_cpu: bool = True) -> Tables:
    """Return the tables of an import: `runs`, and those that `--table` takes.

    Each block holds the default configuration three times and each value once, in random order. `noise` is the
    standard deviation (natural log) of throughput and of each count, from run to run.
    """
    rng, tables = np.random.default_rng([seed, 1]), {name: [] for name in
        ("runs", "io_profile", "queue_depth", "io_latency", "device_profile", "device_curve")}  # fmt: skip
    for case in cases:
        for block in range(4):
            level = math.exp(rng.normal(0, 0.1))
            order = [None, *rng.permutation([None, *range(len(case.values))]), None]
            for place in order:
                facts = case.default if place is None else case.values[place]
                run = f"{case.device}/{block}/{len(tables['runs'])}"
                _add_run(tables, case, place, facts, rng, noise, level, run, f"b{block}", has_cpu)
        _add_device(tables, case)
    return tables


def _add_run(
    tables: Tables, case: Case, place: int | None, facts: Facts, rng: np.random.Generator, noise: float, level: float,
    run: str, block: str, has_cpu: bool,
) -> None:  # fmt: skip
    noisy = partial(lambda value: value * math.exp(rng.normal(0, noise)))
    speed = level * math.exp(rng.normal(0, noise))
    throughput = speed * 1e6 / facts.us
    change = ("", "", "") if place is None else ("k", place + 1, 0)
    row = {"run": run, "block": block, "dbms": "sim", "device": case.device, "tier": "nvme_ssd",
           "workload": case.workload, "threads": case.clients, "dedicated": "true",
           **dict(zip(("knob", "value", "baseline"), change, strict=True)),
           "throughput_ops": throughput, "window_s": WINDOW_S, "monitor": "bpf", "lost_events": 0}  # fmt: skip
    if has_cpu:
        cpu_s = noisy(facts.cpu_us) * 1e-6 * throughput * WINDOW_S
        row |= {"cpu_s": cpu_s, "machine_cpu_share": min(1.0, cpu_s / WINDOW_S / (case.cores or case.clients))}
    tables["runs"].append(row)

    def count(per_s: float) -> int:
        return max(0, round(noisy(per_s) * level * WINDOW_S))

    partly, whole = count(facts.partly), count(facts.whole)
    flushes, reads = count(facts.flushes), count(facts.reads)
    writes = partly + whole
    for op, requests, aligned, in_order, sync in (
        ("write", writes, whole, facts.in_order, facts.waited),
        ("read", reads, reads, 0.3, 1.0),
        ("flush", flushes, 0, 0, 1.0),
    ):
        tables["io_profile"].append({
            "run": run, "op": op, "requests": requests, "bytes": 0 if op == "flush" else requests * WRITE_BYTES,
            "aligned_requests": aligned, "sequential_requests": round(in_order * requests),
            "sync": "" if sync is None else round(sync * requests),
        })  # fmt: skip
    busy = min(1.0, facts.busy * math.exp(rng.normal(0, noise / 3)))
    for depth, share in ((0, 1 - busy), (1, busy * facts.depth_one), (3, busy * (1 - facts.depth_one))):
        if share > 0:
            row = {"run": run, "queue": -1, "depth": depth, "time_ns": round(share * WINDOW_S * 1e9)}
            tables["queue_depth"].append(row)
    if flushes:
        middle = noisy(facts.flush_us)
        row = {"run": run, "op": "flush", "low_us": 0.9 * middle, "high_us": 1.1 * middle, "requests": flushes}
        tables["io_latency"].append(row)


def _add_device(tables: Tables, case: Case) -> None:
    tables["device_profile"].append({
        "device": case.device, "tier": "nvme_ssd", "tier_rank": 3, "write_unit_bytes": UNIT_BYTES,
        "write_unit_us": case.unit_us, "flush_p50_us": case.flush_us, "fsync_p50_us": 1.5 * case.flush_us,
        "random_read_iops_qd1": 5000, "random_read_iops_best": 5000 * case.gain, "best_queue_depth": 32,
        "saturating_depth": 16 if case.gain > 1.1 else 1, "random_sequential_ratio": 0.95,
    })  # fmt: skip
    for pattern, iops in (("randread", 5000 * case.gain), ("randwrite", case.ability)):
        point = {"device": case.device, "curve": "queue_depth", "pattern": pattern, "block_bytes": 4096}
        for depth, rate in ((1, iops / case.gain), (32, iops)):
            tables["device_curve"].append({**point, "queue_depth": depth, "iops": rate, "bytes_per_s": 4096 * rate})


def settings(case: Case) -> Iterator[int | None]:
    """Yield the settings of a case: None is the default configuration."""
    yield None
    yield from range(len(case.values))
