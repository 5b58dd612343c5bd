"""Where the time of a server's sessions goes, from the waits of its threads."""

from collections import defaultdict
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from knobscope.commands.attach.facts import Facts
from knobscope.text.formats import format_decimals, format_micros, format_number, format_share, join_words, plural
from knobscope.thread_classes import SESSION
from knobscope.watch import find_classes

#: Reason of a wait -> what is at fault.
_FAULTS = {
    "flush": "flush",
    "journal": "journal",
    "write": "write",
    "read": "read",
    "fault": "read",
    "swap": "read",
    "cpu": "cpu",
    "runnable": "cpu",
    "preempted": "cpu",
    "lock": "lock",
    "async": "async",
}
_DEVICE = ("flush", "journal", "write", "read")
_WORDS = {
    "flush": "waits for flushes",
    "journal": "waits for the journal of the file system",
    "write": "waits for writes",
    "read": "waits for reads",
    "cpu": "is spent computing or waiting for a processor",
    "lock": "waits for locks",
    "async": "waits for requests of io_uring or libaio, to a device or the network",
    "other": "waits for something that is neither the device, a processor nor a lock",
}
#: A thread that waits by itself for one of these has nothing to do.
_IDLE_REASONS = ("network", "timer")
#: Where no thread serves clients by itself, those of pools wait for work like this.
_POOL_REASONS = (*_IDLE_REASONS, "lock", "async", "other")
_IDLE, _IDLE_TIMER = 0.02, 0.25
_WAITING = 0.5  # of the time for the processors, below which computing is not what takes it
_PASSED_ON = 0.1  # of the times that clients wake a thread, how often it wakes another one that it passes work on to
_LEAST = 0.01  # of the time, below which a reason has no line


@dataclass(frozen=True)
class BudgetLine:
    """A reason with its share of the sessions' time, and the part of it that they waited through another thread."""

    reason: str
    share: float
    through_share: float


@dataclass(frozen=True)
class Budget:
    """Time of the threads that serve clients, without what they wait for their clients; all sums in microseconds.

    Where none does by itself (`sessions` is 0), that of all threads of the server, without what they wait for work.
    """

    sessions: int
    wall_us: float
    window_us: float  # of the thread that was there longest
    idle_us: float
    by_reason: Mapping[str, float]
    through: Mapping[str, float]  # of `by_reason`, what was waited for another thread that waited for it
    each_us: Mapping[str, float]  # mean of a wait, by what is at fault
    has_one: bool  # mostly one request is in flight while the device is busy
    idle_holders_us: float = 0.0  # of `lock`, in which the holder waited for its own client, or slept

    @property
    def active_us(self) -> float:
        """Time in which a client waited for an answer, as far as it is known."""
        return sum(self.by_reason.values())

    @property
    def by_fault(self) -> dict[str, float]:
        """Shares of the active time, the largest first."""
        sums: dict[str, float] = defaultdict(float)
        for reason, time_us in self.by_reason.items():
            sums[_FAULTS.get(reason, "other")] += time_us / (self.active_us or 1)
        return dict(sorted(sums.items(), key=lambda item: -item[1]))

    def is_idle(self, facts: Facts) -> bool:
        """Whether clients waited for next to nothing: a session that waits all the time is something, of however many.

        On a busy machine, waking up by a timer takes time as well, in each session: on processors, and in their queue.
        """
        waiting_us = self.active_us - sum(us for reason, us in self.by_reason.items() if _FAULTS.get(reason) == "cpu")
        if facts.is_idle and waiting_us < _IDLE * self.window_us:
            return self.active_us < _IDLE_TIMER * self.wall_us
        return self.active_us < _IDLE * self.window_us

    @property
    def device_share(self) -> float:
        """Share of the active time in which clients waited for the device, whatever for."""
        return sum(share for fault, share in self.by_fault.items() if fault in _DEVICE)

    @property
    def at_fault(self) -> str:
        """What takes most of the active time: first whether the device does, in one way or another, then in which."""
        others = {fault: share for fault, share in self.by_fault.items() if fault not in _DEVICE}
        is_device = self.device_share >= max(others.values(), default=0)
        fault = next(fault for fault in self.by_fault if (fault in _DEVICE) == is_device)
        return "one_read" if fault == "read" and self.has_one else fault

    @property
    def lines(self) -> list[BudgetLine]:
        """The reasons, the largest first."""
        total = self.active_us or 1
        rows = (BudgetLine(name, us / total, self.through.get(name, 0) / total) for name, us in self.by_reason.items())
        return sorted((row for row in rows if row.share >= _LEAST), key=lambda row: -row.share)

    def describe(self, facts: Facts, at_fault: str) -> str:
        """Return the headline."""
        if at_fault == "idle":
            return "the server is idle: its sessions wait for their clients"
        name = "read" if at_fault == "one_read" else at_fault
        each = f" of {format_micros(self.each_us[name])} each" if name in self.each_us else ""
        share = f"{format_share(self.by_fault[name])} of a session's time {_WORDS[name]}{each}"
        if name == "cpu" and self.by_reason.get("cpu", 0) < _WAITING * self.active_us * self.by_fault[name]:
            computing = format_share(self.by_reason.get("cpu", 0) / self.active_us)
            return (
                f"{format_share(self.by_fault[name])} of a session's time is spent waiting for a processor or "
                f"computing ({computing}); the server keeps {format_number(facts.cores)} processors busy, "
                f"and the machine's are busy for {format_share(facts.machine_share)} of the time"
            )
        if name == "lock" and self.idle_holders_us >= _WAITING * self.by_reason["lock"]:
            share += ", whose holders wait for their own clients, or sleep, meanwhile"
        if name in _DEVICE and self.device_share - self.by_fault[name] >= _LEAST:
            share += f", {format_share(self.device_share)} for the device in all"
        if name in ("cpu", "lock", "async", "other") or facts.depth is None:
            return share
        return f"{share}; {'one request' if facts.has_one else f'{format_decimals(facts.depth, 1)} requests'} in flight"

    def describe_all(self) -> str:
        """Return the shares of all reasons in a sentence."""
        parts = [f"{line.reason} {format_share(line.share)}" for line in self.lines]
        spent = join_words(parts) or "nowhere"
        idle_share = self.idle_us / self.wall_us
        if not self.sessions:
            return (
                "No thread serves a client from request to answer, so what an operation waits for is not known. What "
                f"the server's threads did while they had work: {spent}. They had work for "
                f"{format_share(1 - idle_share)} of their time."
            )
        return (
            f"Where {plural(self.sessions, 'session')} spent the time that clients waited for: {spent}. Of all their "
            f"time, {format_share(idle_share)} was spent waiting for clients."
        )


def read_budget(
    profile: Mapping[str, Any], patterns: Mapping[str, str] = MappingProxyType({}), *, has_one: bool
) -> Budget | None:
    """Return the budget of the threads that serve clients; None where waits were not watched, or there is no thread.

    `patterns`: class of a thread -> pattern, of the DBMS's spec. Where no thread serves clients by itself, as in a
    program in Go or behind a listener, all threads of the server count, each by what it waited for itself.
    """
    if "waits" not in profile:
        return None
    own = [row for row in profile["wait_threads"] if row["is_followed"]]
    classes = find_classes(own, patterns)
    sessions = [row for row in own if classes[row["tid"]] == SESSION]
    if SESSION not in patterns and _pass_on(sessions, own, profile["waits"]):
        sessions = []
    threads = {row["tid"]: row for row in sessions or own}
    idle_reasons = _IDLE_REASONS if sessions else _POOL_REASONS
    by_reason: dict[str, float] = defaultdict(float)
    through: dict[str, float] = defaultdict(float)
    idle_us = idle_holders_us = 0.0
    for row in profile["waits"]:
        if row["tid"] not in threads:
            continue
        reason = row["reason"]
        # What passes in a pool while another thread works is the time of that one: this one has no work.
        if not sessions if row["links"] else reason in idle_reasons:
            idle_us += row["time_us"]
            continue
        if reason in _IDLE_REASONS:  # another thread does nothing either, but holds what this one waits for
            reason = "lock"
            idle_holders_us += row["time_us"]
        by_reason[reason] += row["time_us"]
        through[reason] += row["time_us"] if row["links"] else 0
    wall_us = sum(row["wall_us"] for row in threads.values())
    if not wall_us:
        return None
    return Budget(
        len(sessions),
        wall_us,
        max(row["wall_us"] for row in threads.values()),
        idle_us,
        by_reason,
        through,
        _average_waits(profile, threads),
        has_one,
        idle_holders_us,
    )


def _pass_on(
    sessions: Sequence[Mapping[str, Any]], own: Sequence[Mapping[str, Any]], waits: Sequence[Mapping[str, Any]]
) -> bool:
    """Whether the threads that clients wake leave most of the work to others, which they wake for it.

    A study compares with the latency of operations, which is not known here. What a session waits for through another
    thread is its own time: it does not pass that on.
    """
    numbers = {row["tid"] for row in sessions}
    woken = _count_woken(numbers, waits)
    least = _PASSED_ON * sum(row["served"] for row in sessions)
    if any("switches" in row for row in own):  # without BPF: who wakes whom is not seen, only how often each sleeps
        switches = {row["tid"]: row["switches"] for row in own}
        locked = {row["tid"] for row in waits if row["reason"] == "lock" and not row["links"]}
        woken = {tid: count for tid, count in switches.items() if tid in locked - numbers}
        least = _WAITING * sum(switches[tid] for tid in numbers)
    if sum(woken.values()) < max(least, 1):
        return False
    own_us = sum(row["time_us"] for row in waits if row["tid"] in numbers and row["reason"] not in _IDLE_REASONS)
    others_us = sum(
        row["time_us"]
        for row in waits
        if row["tid"] in woken and not row["links"] and row["reason"] not in _POOL_REASONS
    )
    return bool(others_us > own_us)


def _count_woken(numbers: Container[int], waits: Sequence[Mapping[str, Any]]) -> dict[int, int]:
    """Return how often these threads wake each other one; a wait has a row for each of its parts."""
    woken: dict[int, int] = defaultdict(int)
    for row in waits:
        if row["via"] in numbers and row["links"] == 1 and row["tid"] not in numbers:
            woken[row["tid"]] = max(woken[row["tid"]], row["waits"])
    return woken


def _average_waits(profile: Mapping[str, Any], threads: Container[int]) -> dict[str, float]:
    """Return the mean length of a direct wait for the device, of any thread.

    Where these threads wait for most of it through a thread of the kernel, as that of a journal, theirs is not known.
    """
    kernel = {row["tid"] for row in profile["wait_threads"] if not row["is_followed"]}
    shares: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in profile["waits"]:
        if row["tid"] in threads:
            shares[_FAULTS.get(row["reason"], "other")][bool(row["links"] and row["via"] in kernel)] += row["time_us"]
    sums: dict[str, list[float]] = defaultdict(lambda: [0, 0])
    for row in profile.get("wait_files", []):
        fault = _FAULTS.get(row["reason"], "other")
        sums[fault][0] += row["waits"]
        sums[fault][1] += row["time_us"]
    return {
        fault: time_us / waits
        for fault, (waits, time_us) in sums.items()
        if waits and shares[fault][True] <= shares[fault][False]
    }
