"""What holds a server back, in a sentence: flushes, reads, writes, the processors, locks, or nothing at all."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from knobscope.commands.attach.budget import Budget
from knobscope.commands.attach.causes import Cause
from knobscope.commands.attach.facts import Facts
from knobscope.commands.attach.settings import Advice
from knobscope.text.formats import (
    format_decimals,
    format_micros,
    format_number,
    format_rate,
    format_share,
    format_size,
    join_words,
)

#: What is at fault -> I/O mechanisms of a DBMS whose knobs control it, the most direct one first.
MECHANISMS: dict[str, tuple[str, ...]] = {
    "flush": ("flush",),
    "journal": ("flush", "double_write"),
    "write": ("checkpoint", "write_buffer", "double_write"),
    "read": ("cache", "prefetch", "io_workers"),
    "one_read": ("prefetch", "io_workers", "cache"),
    "unit": ("flush", "double_write"),
    "writeback": ("compression", "write_buffer", "double_write"),
    "checkpoint": ("checkpoint", "write_buffer", "compaction"),
    "swap": ("cache", "write_buffer"),
}
#: Waits for the device.
_WAITS = ("flush", "journal", "write", "read", "one_read")
_DEVICE = (*_WAITS, "unit", "writeback", "checkpoint")
#: Of the time, from which something is named: the larger part of it.
_LARGE = 0.5
_FULL_MACHINE = 0.9
_NEIGHBOURS = 0.5
_PROTECTED = ("a device with power-loss protection, which answers a flush from protected memory",)
_MEMORY = ("more memory for the cache",)
#: What is at fault -> what helps that is no knob, where no cause is known.
_REMEDIES = {"flush": _PROTECTED, "journal": _PROTECTED, "read": _MEMORY, "one_read": _MEMORY}


@dataclass(frozen=True)
class Conclusion:
    """The answer, and its words.

    `at_fault`: a key of MECHANISMS, or `cpu`, `lock`, `async`, `idle`, `neighbour`, `other`. `remedies`: what helps and
    is no knob.
    """

    at_fault: str
    headline: str
    is_device: bool
    sentences: list[str] = field(default_factory=list)
    remedies: Sequence[str] = ()


def conclude(
    facts: Facts, budget: Budget | None, find_cause: Callable[[str], Cause | None] = lambda _: None
) -> Conclusion:
    """Return what a window says; with the budget of waits where sessions were watched, else from counts and times.

    `find_cause` says what makes clients wait for the device.
    """
    by_waits = budget if budget is not None and budget.sessions else None
    at_fault = _judge(facts) if by_waits is None else "idle" if by_waits.is_idle(facts) else by_waits.at_fault
    is_computing = by_waits is None and (facts.cores or 0) >= _LARGE
    cause = find_cause(at_fault) if at_fault in _WAITS or (by_waits is None and not is_computing) else None
    evidence = [_describe_device(facts)]
    headline = _HEADLINES[at_fault](facts) if by_waits is None else by_waits.describe(facts, at_fault)
    if budget is not None:
        evidence.insert(0, budget.describe_all())
    if cause is None and at_fault in _WAITS and (facts.foreign_share or 0) >= _NEIGHBOURS:
        headline += f"; others cause {format_share(facts.foreign_share)} of what the device reads and writes"
    if cause is not None:
        at_fault, headline = cause.name, f"{cause.sentence}. {_capitalise(headline)}"
    remedies = cause.remedies if cause is not None else _REMEDIES.get(at_fault, ())
    is_device = at_fault in _DEVICE
    if not is_device and at_fault not in ("idle", "neighbour", "async"):
        headline = f"Not the device: {headline}"
    return Conclusion(at_fault, f"{_capitalise(headline)}.", is_device, evidence, remedies)


def _capitalise(sentence: str) -> str:
    return f"{sentence[0].upper()}{sentence[1:]}"


def suggest(conclusion: Conclusion, advice: Sequence[Advice]) -> str | None:
    """Return what to try: the knobs that control what is at fault, and what else helps."""
    tries = [*(item.words for item in advice), *conclusion.remedies]
    return f"To try: {join_words(tries, 'or')}." if tries else None


def _judge(facts: Facts) -> str:
    """Return what is at fault as far as counts and times at the device tell; waits are not known."""
    busy, cores = facts.busy_share or 0, facts.cores or 0
    reads, writes, flush = (facts.operations[op] for op in ("read", "write", "flush"))
    answers = (  # the first that is true
        (facts.is_idle and busy < _LARGE, "idle"),
        (facts.is_idle and (facts.foreign_share or 0) >= _NEIGHBOURS, "neighbour"),
        (facts.flushing_share >= _LARGE, "flush" if writes.in_flight <= flush.in_flight else "write"),
        (busy < _LARGE, "cpu" if cores >= _LARGE or (facts.machine_share or 0) >= _FULL_MACHINE else "other"),
        (flush.in_flight > max(reads.in_flight, writes.in_flight), "flush"),
        (reads.in_flight < writes.in_flight, "write"),
        (facts.has_one, "one_read"),
    )
    return next((fault for is_true, fault in answers if is_true), "read")


def _describe_flush(facts: Facts) -> str:
    flush = facts.operations["flush"]
    return (
        f"a flush is under way for {format_share(facts.flushing_share)} of the time: "
        f"{format_rate(flush.device_per_s, 'flushes/s')} of {format_micros(flush.mean_us)} each{_describe_depth(facts)}"
    )


def _describe_depth(facts: Facts) -> str:
    if facts.has_one:
        return "; one request in flight"
    return "" if facts.depth is None else f"; {format_decimals(facts.depth, 1)} requests in flight"


def _describe_op(facts: Facts, op: str) -> str:
    operation = facts.operations[op]
    return (
        f"the device is busy for {format_share(facts.busy_share)} of the time: "
        f"{format_rate(operation.device_per_s, f'{op}s/s')} of {format_size(operation.mean_bytes)} and "
        f"{format_micros(operation.mean_us)} each{_describe_depth(facts)}"
    )


def _describe_cpu(facts: Facts) -> str:
    return (
        f"the server keeps {format_number(facts.cores)} processors busy, the machine's are busy for "
        f"{format_share(facts.machine_share)} of the time, the device for {format_share(facts.busy_share)}"
    )


def _describe_other(facts: Facts) -> str:
    return (
        f"the device is idle for {format_share(1 - (facts.busy_share or 0))} of the time and the server keeps "
        f"{format_number(facts.cores)} processors busy; it waits for its clients, a lock or a timer"
    )


def _describe_neighbour(facts: Facts) -> str:
    return (
        f"others use the device: it is busy for {format_share(facts.busy_share)} of the time, and "
        f"{format_share(facts.foreign_share or 0)} of what it reads and writes are theirs"
    )


_HEADLINES: dict[str, Callable[[Facts], str]] = {
    "flush": _describe_flush,
    "write": lambda facts: _describe_op(facts, "write"),
    "read": lambda facts: _describe_op(facts, "read"),
    "one_read": lambda facts: _describe_op(facts, "read"),
    "cpu": _describe_cpu,
    "other": _describe_other,
    "idle": lambda _: "the server is idle: it has next to nothing to do",
    "neighbour": _describe_neighbour,
}


def _describe_device(facts: Facts) -> str:
    parts = [
        f"{format_rate(operation.per_s, f'{op}s/s')} of {format_size(operation.mean_bytes)}"
        for op, operation in facts.operations.items()
        if op in ("read", "write") and operation.per_s
    ]
    flush = facts.operations["flush"]
    if flush.device_per_s:
        parts.append(f"{format_rate(flush.device_per_s, 'flushes/s')} of {format_micros(flush.mean_us)}")
    rates = ", ".join(parts) or "no requests of the server"
    busy = f"At the device: {rates}; busy for {format_share(facts.busy_share)} of the time"
    if not facts.foreign_share:
        return f"{busy}."
    return f"{busy}; {format_share(facts.foreign_share)} of what the device reads and writes are other programs'."
