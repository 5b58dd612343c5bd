"""What an operation waits for, in words: 480 µs, of which 310 µs flush (250 µs through the leader of the group), ...

The reasons are here, in the order of all tables and pictures: what a device causes first, then what others cause, then
what a thread does itself.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from knobscope.text.formats import format_micros, format_share, join_words
from knobscope.thread_classes import SESSION

#: Reason of the budget -> its words.
REASONS = {
    "flush": "flush",
    "write": "write-back",
    "journal": "file-system journal",
    "read": "read",
    "fault": "page fault",
    "swap": "swap",
    "async": "asynchronous I/O",
    "lock": "lock",
    "cpu": "CPU",
    "runnable": "runnable",
    "timer": "sleep",
    "other": "other waits",
    "unknown": "unknown",
    "network": "client",
}
#: The reason that is no time of an operation in the server: its client, or a peer, has not asked for anything.
IDLE = "network"
#: Reason -> metric: time of client-serving threads per operation.
WAIT_METRICS = {reason: f"wait_{reason}_us_per_op" for reason in REASONS}
#: Reason of the probe that counts as another one: who was displaced by another thread waits for a processor, too.
_COUNTS_AS = {"preempted": "runnable"}
#: Parts below this share of the whole are not mentioned; nor is less than the second share of a part, where it passed
#: waiting for other threads, nor are changes below that share of the largest one.
_WORTH_TELLING, _WORTH_TELLING_OF = 0.01, 0.1

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True)
class Part:
    """Microseconds of one reason; `through` of them passed waiting for another thread, mostly of the class `via`."""

    reason: str
    micros: float
    through: float = 0.0
    via: str | None = None


def reasons_of_probe(reason: str) -> tuple[str, ...]:
    """Return the reasons of table `waits` that a reason of the budget stands for."""
    return (reason, *(own for own, budget_reason in _COUNTS_AS.items() if budget_reason == reason))


def sum_parts(waits: Rows, chains: Rows, thread_class: str = SESSION, operations: float = 1) -> list[Part]:
    """Return the parts of a class, per operation, from rows of tables `waits` and `wait_chains`, all reasons in order.

    Empty where the class has no threads.
    """
    own = [row for row in waits if row["thread_class"] == thread_class]
    parts = []
    for reason in REASONS if own else ():
        names = reasons_of_probe(reason)
        rows = [row for row in own if row["reason"] in names]
        via: dict[str | None, float] = {}
        for row in chains:
            if row["thread_class"] == thread_class and row["reason"] in names:
                via[row["via_class"]] = via.get(row["via_class"], 0.0) + row["time_us"]
        time_us, through_us = (sum(row[name] for row in rows) / operations for name in ("time_us", "through_us"))
        most = max(via, key=lambda name: via[name], default=None)
        is_others = most == SESSION and thread_class != SESSION
        parts.append(Part(reason, time_us, through_us, "a session" if is_others else most))
    return parts


def in_server(parts: Iterable[Part]) -> list[Part]:
    """Return the parts of the time in the server: all but that of the client."""
    return [part for part in parts if part.reason != IDLE]


def sum_micros(parts: Iterable[Part]) -> float:
    """Return the time of an operation in the server, in microseconds."""
    return sum(part.micros for part in in_server(parts))


def describe_budget(parts: Iterable[Part], latency_us: float | None = None) -> str:
    """Say what the time of an operation in the server consists of, the largest part first.

    `latency_us` is the latency that clients measured: a thread that passes operations on sees little of it.
    """
    total = sum_micros(parts)
    share = f" ({format_share(total / latency_us)} of its latency of {format_micros(latency_us)})" if latency_us else ""
    return f"{format_micros(total)}{share}, of which {_list(parts, format_micros)}"


def describe_shares(parts: Iterable[Part]) -> str:
    """Say the same in shares of the time that was not spent waiting for a client."""
    total = sum_micros(parts)
    return _list(parts, lambda micros: format_share(micros / total))


def _list(parts: Iterable[Part], show: Any) -> str:
    counted = sorted(in_server(parts), key=lambda part: -part.micros)
    total = sum(part.micros for part in counted)
    phrases = [_describe(part, show) for part in counted if part.micros > _WORTH_TELLING * total]
    return ", ".join(phrases) or "nothing"


def _describe(part: Part, show: Any) -> str:
    text = f"{show(part.micros)} {REASONS[part.reason]}"
    if part.through <= _WORTH_TELLING_OF * part.micros:
        return text
    return f"{text} ({show(part.through)} through {_name_other(part)})"


def _name_other(part: Part) -> str:
    """Name who was waited for: among sessions, who flushes for the others leads the group of their commits."""
    if part.via == SESSION:
        return "the leader of the group" if part.reason == "flush" else "another session"
    return part.via or "other threads"


def describe_budget_change(before: Iterable[Part], after: Iterable[Part]) -> str:
    """Say by how much the time of an operation in the server changes, and which parts of it do."""
    sides = list(before), list(after)
    parts = describe_changed_parts(*sides)
    return f"takes {_more(sum_micros(sides[1]) - sum_micros(sides[0]))}: {parts}" if parts else "takes as long"


def describe_changed_parts(before: Iterable[Part], after: Iterable[Part]) -> str:
    """Say which parts of the time of an operation in the server change; empty where none does.

    Where the wait for clients changes more, and the same way, it is said, too: a thread that passes operations on, and
    waits for their results as it does for clients, spends little of their time itself.
    """
    sides = [dict.fromkeys(REASONS, 0.0) | {part.reason: part.micros for part in parts} for parts in (before, after)]
    changes = {reason: sides[1][reason] - sides[0][reason] for reason in REASONS}
    idle = changes.pop(IDLE)
    ordered = sorted(changes.items(), key=lambda item: -abs(item[1]))
    largest, total = abs(ordered[0][1]), sum(changes.values())
    phrases = [
        f"{_more(change)} {REASONS[reason]}"
        for reason, change in ordered
        if largest and abs(change) >= _WORTH_TELLING_OF * largest
    ]
    passed_on = f", and {_more(idle)} of waiting for clients, or for threads that serve them"
    return join_words(phrases) + (passed_on if phrases and idle * total > total**2 else "")


def _more(micros: float) -> str:
    return f"{format_micros(abs(micros))} {'more' if micros > 0 else 'less'}"
