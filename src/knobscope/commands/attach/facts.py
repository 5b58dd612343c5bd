"""What a window says in a few numbers: rates, sizes and times by operation, depth, processors."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knobscope.watch import Profile
from knobscope.watch.text import find_quantile


@dataclass(frozen=True)
class Operation:
    """Requests of one kind: `per_s` and `mean_bytes` of the server's, `device_per_s` of all, latencies of all."""

    per_s: float
    device_per_s: float
    mean_bytes: float
    mean_us: float | None
    p99_us: float | None
    foreign_per_s: float = 0.0  # of the device's, those of other programs

    @property
    def in_flight(self) -> float:
        """Mean number in flight, by Little's law."""
        return self.device_per_s * (self.mean_us or 0) / 1e6


@dataclass(frozen=True)
class Facts:
    """The numbers that a judgement starts from; None: not known without BPF."""

    seconds: float
    operations: Mapping[str, Operation]
    busy_share: float | None
    depth: float | None  # while the device is busy
    one_share: float | None  # of the busy time, with one request in flight
    cores: float | None  # processors that the server keeps busy
    machine_share: float | None  # of all processors' time
    foreign_share: float | None  # of the device's reads and writes, or of their bytes: of others; None: of a handful

    @property
    def flushing_share(self) -> float:
        """Share of the time that flushes take, one after another."""
        return min(self.operations["flush"].in_flight, 1.0)

    @property
    def foreign_in_flight(self) -> float:
        """Mean number of reads and writes of other programs in flight.

        Requests have the times of the server's own. A kind that it has none of is what remains of the device's depth.
        """
        data = [self.operations[op] for op in ("read", "write")]
        known = sum(operation.foreign_per_s * (operation.mean_us or 0) / 1e6 for operation in data)
        if all(operation.mean_us is not None or not operation.foreign_per_s for operation in data):
            return known
        depth = (self.depth or 0) * (self.busy_share or 0)
        return known + max(depth - sum(operation.in_flight for operation in self.operations.values()), 0)

    @property
    def is_idle(self) -> bool:
        """Whether the server neither computes nor reads or flushes to speak of: writes can be others' for it."""
        reads = self.operations["read"]
        reading = reads.per_s * (reads.mean_us or 0) / 1e6
        return (self.cores or 0) < _IDLE and reading < _IDLE and self.flushing_share < _IDLE

    @property
    def has_one(self) -> bool:
        """Whether mostly one request is in flight while the device is busy; sums of the kernel know the mean alone."""
        if self.one_share is None:
            return self.depth is not None and self.depth <= _ONE_DEPTH
        return self.one_share >= _ONE_SHARE

    @property
    def requests_per_s(self) -> float:
        """Reads and writes of the server."""
        return self.operations["read"].per_s + self.operations["write"].per_s


_LEAST_REQUESTS = 30
_ONE_SHARE, _ONE_DEPTH = 0.9, 1.1
_THROTTLED = "kworker/kthrotld"
_IDLE = 0.05  # of the time of a processor, or with a request in flight


def read_facts(profile: Profile, *, is_limited: bool = False) -> Facts:
    """Return the numbers of a window.

    `is_limited`: requests that a thread of the kernel issued because a cgroup's limit had held them back are the
    server's.
    """
    rows: dict[str, Mapping[str, Any]] = {row["op"]: row for row in profile["io_profile"]}
    for held in profile.get("submitters", []) if is_limited else ():
        if held["submitter"] == _THROTTLED:
            rows[held["op"]] = _claim(rows[held["op"]], held)
    seconds = profile["duration_s"]
    latencies: Sequence[Mapping[str, Any]] = profile["io_latency"]
    operations = {
        op: Operation(
            per_s=(row["requests"] or 0) / seconds,
            device_per_s=(row["device_requests"] or 0) / seconds,
            mean_bytes=(row["bytes"] or 0) / (row["requests"] or 1),
            mean_us=_find_mean([bucket for bucket in latencies if bucket["op"] == op]),
            p99_us=find_quantile([bucket for bucket in latencies if bucket["op"] == op], 0.99),
            foreign_per_s=(row["foreign_requests"] or 0) / seconds,
        )
        for op, row in rows.items()
    }
    data = [rows[op] for op in ("read", "write")]
    total = sum(row["device_requests"] or 0 for row in data)
    is_split = profile["monitor"] == "bpf" and total >= _LEAST_REQUESTS
    cpu_s = profile["cpu_s"]
    return Facts(
        seconds,
        operations,
        profile.get("busy_share"),
        profile.get("mean_depth"),
        profile.get("depth_one_share"),
        None if cpu_s is None else cpu_s / seconds,
        profile.get("machine_cpu_share"),
        max(_share_foreign(data, "requests"), _share_foreign(data, "bytes")) if is_split else None,
    )


def _claim(row: Mapping[str, Any], held: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a row in which requests that were held back are no longer foreign, but the server's."""
    gained = {what: (row[what] or 0) + held[what] for what in ("requests", "bytes")}
    lost = {f"foreign_{what}": max((row[f"foreign_{what}"] or 0) - held[what], 0) for what in ("requests", "bytes")}
    return {**row, **gained, **lost}


def _share_foreign(rows: Sequence[Mapping[str, Any]], what: str) -> float:
    foreign, everyone = (sum(row[f"{whose}_{what}"] or 0 for row in rows) for whose in ("foreign", "device"))
    return foreign / everyone if everyone else 0.0


def _find_mean(buckets: Sequence[Mapping[str, Any]]) -> float | None:
    """Return the mean of a histogram by the middles of its buckets, which are a quarter of an octave wide."""
    total = sum(bucket["requests"] for bucket in buckets)
    area = sum(bucket["requests"] * (bucket["low_us"] + bucket["high_us"]) / 2 for bucket in buckets)
    return area / total if total else None
