"""What threads waited for, as text for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.text.budgets import IDLE, REASONS, describe_shares, in_server, sum_parts
from knobscope.text.formats import UNKNOWN, format_count, format_micros, format_seconds, plural
from knobscope.text.text_table import align
from knobscope.thread_classes import OURS, SESSION
from knobscope.watch.profile import Profile
from knobscope.watch.waits import sum_waits

_MAX_CLASSES = 12
_MAX_FILES = 8
_MAX_STACKS, _MAX_FUNCTIONS = 5, 4

#: Of a thread in the background they mostly say that it has nothing to do.
_ASLEEP = ("lock", "timer", "unknown")

Rows = Sequence[Mapping[str, Any]]


def format_waits(profile: Profile) -> list[str]:
    """Return blocks on classes of threads, files and stacks."""
    classes = format_classes(*sum_waits(profile, {}))
    return [classes, _format_files(profile.get("wait_files", [])), _format_stacks(profile.get("wait_stacks", []))]


def format_classes(waits: Rows, chains: Rows) -> str:
    """Return a line per class of threads in shares of the time without waiting for clients, `session` first.

    Threads of knobscope, which are followed with the server or client, have none.
    """
    lines = {}
    for name in dict.fromkeys(row["thread_class"] for row in waits if not _is_ours(row["thread_class"])):
        parts = sum_parts(waits, chains, name)
        threads = next(row["threads"] for row in waits if row["thread_class"] == name)
        busy_us = sum(part.micros for part in in_server(parts))
        idle_us = sum(part.micros for part in parts if part.reason == IDLE)
        times = f"{plural(threads, 'thread')}, {format_seconds((busy_us + idle_us) / 1e6)}"
        whom = "for a client" if name == SESSION else "to be woken"
        idle = f", of that {format_seconds(idle_us / 1e6)} waiting {whom}" if idle_us else ""
        shares = describe_shares(parts) if busy_us else "nothing"
        asleep_us = sum(part.micros for part in parts if part.reason in _ASLEEP)
        lines[f"{name} ({times}{idle}): {shares}"] = (name == SESSION, busy_us - asleep_us)
    shown = sorted(lines, key=lambda line: lines[line], reverse=True)[:_MAX_CLASSES]
    more = [f"and {plural(len(lines) - len(shown), 'more class', 'more classes')}"] if len(shown) < len(lines) else []
    head = "what threads did and waited for, by class, in shares of their time"
    return "\n".join([head, *(f"  {line}" for line in [*shown, *more])]) if lines else ""


def _is_ours(thread_class: str) -> bool:
    return thread_class == OURS or thread_class.startswith(f"{OURS}-")


def _format_files(rows: Rows) -> str:
    table = [["file, by waits", "for", "waits", "time", "longest"]]
    for row in sorted(rows, key=lambda row: -row["time_us"])[:_MAX_FILES]:
        name = row["name"] or UNKNOWN
        times = [format_micros(row["time_us"]), format_micros(row["longest_us"])]
        table.append([name, _name_reason(row["reason"]), format_count(row["waits"]), *times])
    return align(table) if rows else ""


def _format_stacks(rows: Rows) -> str:
    table = [["innermost functions of the kernel", "for", "call", "time"]]
    for row in sorted(rows, key=lambda row: -row["time_us"])[:_MAX_STACKS]:
        functions = " < ".join(row["stack"].split(";")[:_MAX_FUNCTIONS])
        time = format_micros(row["time_us"])
        table.append([functions, _name_reason(row["reason"]), row["syscall"] or UNKNOWN, time])
    return align(table) if rows else ""


def _name_reason(reason: str) -> str:
    return REASONS.get(reason, reason)
