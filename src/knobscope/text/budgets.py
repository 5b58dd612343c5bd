"""What an operation waits for, in words: of 480 µs: 310 µs flush (250 µs through the leader of the group), ...

The reasons stand here, in the order of all tables, sentences and pictures: what a device causes first, then what others
cause, then what a thread does itself.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from knobscope.text.formats import format_micros, join_words

__all__ = ["IDLE", "REASONS", "WAIT_METRICS", "Part", "describe_budget", "describe_budget_change", "is_of_reason"]

#: Reason of the budget -> its words. `runnable` is also the time of a thread that another one displaced (`preempted`).
REASONS = {
    "flush": "flush",
    "write": "write-back",
    "journal": "journal of the file system",
    "read": "read",
    "fault": "page fault",
    "async": "asynchronous I/O",
    "lock": "lock",
    "cpu": "CPU",
    "runnable": "runnable",
    "timer": "sleep",
    "other": "other",
    "unknown": "unknown",
    "network": "client",
}
#: The reason that is no time of an operation in the server: its client, or a peer, has not asked for anything.
IDLE = "network"
#: Reason -> metric: time of client-serving threads per operation.
WAIT_METRICS = {reason: f"wait_{reason}_us_per_op" for reason in REASONS}
_RUNNABLE = ("runnable", "preempted")
#: Parts below this share of the whole are not mentioned.
_WORTH_TELLING = 0.01


@dataclass(frozen=True)
class Part:
    """Microseconds per operation of one reason; `through` of them were waited for another thread, mostly of `via`."""

    reason: str
    micros: float
    through: float = 0.0
    via: str = ""  # in words: the leader of the group


def is_of_reason(reason: str) -> tuple[str, ...]:
    """Return the reasons of the probe that a reason of the budget stands for."""
    return _RUNNABLE if reason == "runnable" else (reason,)


def describe_budget(parts: Sequence[Part]) -> str:
    """Say what the time of an operation in the server consists of; waiting for its client is no part of it."""
    counted = _in_server(parts)
    total = sum(part.micros for part in counted)
    shown = [_describe(part) for part in counted if part.micros >= _WORTH_TELLING * total and part.micros > 0]
    return f"of {format_micros(total)}: {', '.join(shown)}" if shown else "no time was seen"


def describe_budget_change(before: Sequence[Part], after: Sequence[Part]) -> str:
    """Say by how much the time of an operation in the server changes, and which parts of it do."""
    earlier, later = (dict.fromkeys(REASONS, 0.0) | {part.reason: part.micros for part in one} for one in (before, after))
    changes = {reason: later[reason] - earlier[reason] for reason in REASONS if reason != IDLE}
    total = sum(changes.values())
    largest = max(map(abs, changes.values()))
    told = [
        f"{format_micros(abs(change))} {'more' if change > 0 else 'less'} {REASONS[reason]}"
        for reason, change in sorted(changes.items(), key=lambda item: -abs(item[1]))
        if abs(change) >= 10 * _WORTH_TELLING * largest and change
    ]
    if not told:
        return "takes as long as before"
    return f"takes {format_micros(abs(total))} {'more' if total > 0 else 'less'}: {join_words(told)}"


def _in_server(parts: Iterable[Part]) -> list[Part]:
    """Return the parts without that of the client, the largest first."""
    return sorted((part for part in parts if part.reason != IDLE), key=lambda part: -part.micros)


def _describe(part: Part) -> str:
    words = f"{format_micros(part.micros)} {REASONS[part.reason]}"
    if part.through < _WORTH_TELLING * part.micros:
        return words
    return f"{words} ({format_micros(part.through)} through {part.via or 'other threads'})"
