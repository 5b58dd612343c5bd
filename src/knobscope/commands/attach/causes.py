"""What makes a server wait for the device: a limit, swap, neighbours, its own writes in the background, their sizes."""

import json
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from knobscope.commands.attach.busy_files import BusyFile
from knobscope.commands.attach.facts import Facts
from knobscope.commands.attach.surroundings import Limit, Surroundings
from knobscope.tables import DeviceProfile
from knobscope.tables.detection import FindingRow
from knobscope.text.formats import (
    format_decimals,
    format_micros,
    format_rate,
    format_share,
    format_size,
    list_names,
)
from knobscope.thread_classes import class_of_thread
from knobscope.watch import Profile

_REACHED = 0.8  # of a limit: it holds back bursts as well
_LARGE = 0.5  # the larger part
_FEW_FAULTS = 1  # major faults per second, from which swap is looked at
_NEIGHBOURS_IN_FLIGHT = 0.5  # mean number, from which others are in the way
_BACKLOG = 0.5  # mean number of writes in flight, from which they are in the way
#: What clients wait for, by the requests that it takes.
_READS, _WRITES = ("read", "one_read"), ("flush", "journal", "write")
#: Classes of threads, in specs, that write data files in the background.
_WRITERS = ("checkpointer", "background_writer", "compaction", "memtable_flush")
_STOPS_WRITES = "balance_dirty_pages"  # the kernel's function in which who writes too much waits


@dataclass(frozen=True)
class Cause:
    """What makes a server wait: its name as `at_fault`, the sentence that begins the headline, what helps."""

    name: str
    sentence: str
    remedies: tuple[str, ...] = ()


@dataclass(frozen=True)
class Evidence:
    """Everything that was seen in a window."""

    facts: Facts
    profile: Profile
    unit: int  # bytes of a write that the device prefers
    files: Sequence[BusyFile] = ()
    findings: Sequence[FindingRow] = ()
    surroundings: tuple[Surroundings, Surroundings] | None = None
    patterns: Mapping[str, str] = field(default_factory=dict)  # class of a thread -> pattern, of the DBMS's spec
    device: DeviceProfile | None = None

    def may_be(self, fault: str, faults: Sequence[str]) -> bool:
        """Whether clients wait for one of these; anything may be where nobody watched what they wait for."""
        return fault in faults or not self.profile.get("wait_threads")


def find_cause(fault: str, evidence: Evidence) -> Cause | None:
    """Return the first cause that explains why clients wait for `fault`; None: nothing but the device itself."""
    for find in _FINDERS:
        if (cause := find(fault, evidence)) is not None:
            return cause
    return None


def _find_swap(fault: str, evidence: Evidence) -> Cause | None:
    """Name swap where most major faults of the server may have been for swapped pages."""
    if evidence.surroundings is None or not evidence.may_be(fault, _READS):
        return None
    before, after = evidence.surroundings
    faults, pages = after.major_faults - before.major_faults, after.pages_swapped_in - before.pages_swapped_in
    if not after.bytes_in_swap or faults < _FEW_FAULTS * evidence.facts.seconds or pages < _LARGE * faults:
        return None
    return Cause(
        "swap",
        f"memory is short: {format_size(after.bytes_in_swap)} of the server are in swap, and it waits for "
        f"{format_rate(faults / evidence.facts.seconds, 'page faults/s')} that read from there",
        ("more memory for the server",),
    )


def _find_cap(fault: str, evidence: Evidence) -> Cause | None:
    if evidence.surroundings is None:
        return None
    limits = [
        limit
        for limit in evidence.surroundings[1].limits
        if evidence.may_be(fault, _READS if limit.op == "read" else _WRITES)
        and _rate_of(limit, evidence) >= _REACHED * limit.per_s
    ]
    if not limits:
        return None
    limit = max(limits, key=lambda limit: _rate_of(limit, evidence) / limit.per_s)
    return Cause(
        "cap",
        f"a limit holds the server back: {limit.file} permits {_format_limit(limit, limit.per_s)}, and the server does "
        f"{_format_limit(limit, _rate_of(limit, evidence))}",
        (f"a higher limit in {limit.file}",),
    )


def _rate_of(limit: Limit, evidence: Evidence) -> float:
    operation = evidence.facts.operations[limit.op]
    # Other monitors than BPF count those of the whole device.
    others = operation.foreign_per_s if evidence.profile["monitor"] != "bpf" else 0.0
    return max(operation.per_s - others, 0.0) * (operation.mean_bytes if limit.is_bytes else 1)


def _format_limit(limit: Limit, per_s: float) -> str:
    return f"{format_size(per_s)}/s of {limit.op}s" if limit.is_bytes else format_rate(per_s, f"{limit.op}s/s")


def _find_neighbour(_: str, evidence: Evidence) -> Cause | None:
    """Name others where most of what the device has to do is theirs."""
    facts = evidence.facts
    if facts.foreign_share is None or facts.foreign_share < _LARGE or facts.foreign_in_flight < _NEIGHBOURS_IN_FLIGHT:
        return None
    names = list_names(_list_neighbours(evidence.profile)[:3]) or "other programs"
    return Cause(
        "neighbour",
        f"others use the device: {format_share(facts.foreign_share)} of what it reads and writes is for {names}, with "
        f"{format_decimals(facts.foreign_in_flight, 1)} requests in flight on average",
        ("another device for one of them", "a limit for the others, such as io.max of their cgroup"),
    )


def _list_neighbours(profile: Profile) -> list[str]:
    """Return the names of threads that are not the server's, those that caused most bytes first."""
    own = {row["name"] for row in profile.get("wait_threads", []) if row["is_followed"]}
    sums: Counter[str] = Counter()
    for row in profile.get("submitters", []):
        if row["submitter"] not in own and "/" not in row["submitter"]:  # of the kernel: for whoever
            sums[row["submitter"]] += row["bytes"]
    return [name for name, count in sums.most_common() if count]


def _find_unit(fault: str, evidence: Evidence) -> Cause | None:
    """Name the device's unit where most of a flush is spent on filling it, by the device's profile.

    The rule that knows the profile says so only where no other program uses the device; here waits are known.
    """
    flush_us, fill_us = _measure_filling(evidence)
    if fault not in _WRITES or fill_us <= _LARGE * flush_us:
        return None
    bound = "at least " if evidence.profile["monitor"] == "procfs" else ""  # not seen: how many a flush fills
    return Cause(
        "unit",
        f"small writes hold the server back: of the {format_micros(flush_us)} of a flush the device spends "
        f"{bound}{format_micros(fill_us)} on filling units of {format_size(evidence.unit)} that were written in part",
        ("fewer, larger writes between flushes", "a device with power-loss protection"),
    )


def _measure_filling(evidence: Evidence) -> tuple[float, float]:
    """Return how long a flush takes and what of that fills units: without BPF one of them, if writes are small."""
    for finding in evidence.findings:
        facts = json.loads(finding["evidence"] or "{}")
        if facts.get("fill_us"):
            return facts.get("flush_us") or 0.0, facts["fill_us"]
    device, operations = evidence.device or {}, evidence.facts.operations
    unit, flush_us = device.get("write_unit_bytes"), operations["flush"].mean_us
    if evidence.profile["monitor"] != "procfs" or not unit or not flush_us:
        return 0.0, 0.0
    is_small = 0 < operations["write"].mean_bytes <= unit / 2  # at least half of them fill none
    return flush_us, min(flush_us, device.get("write_unit_us") or 0.0) if is_small else 0.0


def _find_writeback(fault: str, evidence: Evidence) -> Cause | None:
    """Name write-back where clients wait for writes that the kernel does on its own, from the page cache.

    Who flushes a file submits its pages itself; who only writes waits when the kernel permits no more unwritten pages.
    """
    rows = [row for row in evidence.profile["io_profile"] if row["op"] == "write"]
    own = sum(row["own_bytes"] or 0 for row in rows)
    written_back = sum(row["inode_bytes"] or 0 for row in rows)
    stacks = evidence.profile.get("wait_stacks", [])
    waited = sum(row["time_us"] for row in stacks if row["reason"] == "write")
    stopped = sum(row["time_us"] for row in stacks if _STOPS_WRITES in row["stack"])
    if fault != "write" or (written_back <= own and stopped <= _LARGE * waited):
        return None
    write = evidence.facts.operations["write"]
    return Cause(
        "writeback",
        "write-back is full: the server writes faster than the device stores "
        f"({format_size(write.per_s * write.mean_bytes)}/s), and the kernel stops its writes (dirty limit)",
        ("a device that writes faster",),
    )


def _find_checkpoint(fault: str, evidence: Evidence) -> Cause | None:
    """Name writes of data files where they are most of what is written, and clients wait for the log behind them."""
    written = [file for file in evidence.files if file.op == "write"]
    writes = evidence.facts.operations["write"]
    if (
        not evidence.may_be(fault, _WRITES)
        or writes.in_flight < _BACKLOG
        or not any(file.purpose == "log" for file in written)
    ):
        return None
    requests, of_data = (sum(file.requests for file in files) for files in (written, filter(_is_data, written)))
    size, size_of_data = (sum(file.bytes for file in files) for files in (written, filter(_is_data, written)))
    if max(of_data / requests, size_of_data / size) < _LARGE:
        return None
    return Cause(
        "checkpoint",
        f"writes of data files (checkpoint, eviction, compaction) are in the way of the server's own log: "
        f"{format_share(of_data / requests)} of its writes and {format_share(size_of_data / size)} of their bytes, "
        f"{format_decimals(writes.in_flight, 1)} writes in flight",
    )


def _find_writers(fault: str, evidence: Evidence) -> Cause | None:
    """Name writes of data files where threads that do nothing else do most of the writing, and no file is known."""
    writes = evidence.facts.operations["write"]
    if evidence.profile["monitor"] != "procfs" or fault not in _WRITES or writes.in_flight < _BACKLOG:
        return None
    sizes, calls = Counter[bool](), Counter[bool]()
    for row in evidence.profile.get("wait_threads", []):
        is_writer = class_of_thread(evidence.patterns, row["name"], row["title"], serves=False) in _WRITERS
        sizes[is_writer] += row.get("written_bytes", 0)
        calls[is_writer] += row.get("write_calls", 0)
    shares = [counts[True] / (counts.total() or 1) for counts in (calls, sizes)]
    if max(shares) < _LARGE:
        return None
    return Cause(
        "checkpoint",
        "writes of data files (checkpoint, eviction, compaction) are in the way of the server's own log: threads that "
        f"do nothing else make {format_share(shares[0])} of its calls that write, and {format_share(shares[1])} of the "
        f"bytes, {format_decimals(writes.in_flight, 1)} writes in flight",
    )


def _is_data(file: BusyFile) -> bool:
    """Whether a file holds tables, as far as the spec says."""
    return file.purpose == "data" or file.purpose.startswith("table ")


_FINDERS: tuple[Callable[[str, Evidence], Cause | None], ...] = (
    _find_swap,
    _find_cap,
    _find_neighbour,
    _find_unit,
    _find_writeback,
    _find_checkpoint,
    _find_writers,
)
