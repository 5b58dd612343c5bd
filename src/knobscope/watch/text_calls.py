"""System calls and page faults of a profile as text for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.text.layout import ABSENT, align, number, percent
from knobscope.watch.interface import Profile

__all__ = ["format_calls"]

_MAX_ROWS = 12

Rows = Sequence[Mapping[str, Any]]


def format_calls(profile: Profile) -> list[str]:
    """Return blocks on what was watched beside the block layer: calls, ways of I/O, files, faults, what is lost."""
    blocks = [
        _format_syscalls(profile.get("syscalls", [])),
        _format_modes(profile.get("io_modes", [])),
        _format_accesses(profile.get("file_access", [])),
        _format_faults(profile.get("faults", [])),
        _format_losses(profile.get("lost_syscalls", {})),
        _format_losses(profile.get("lost_faults", {})),
    ]
    return [block for block in blocks if block]


def _format_syscalls(rows: Rows) -> str:
    table = [["system call", "calls", "errors", "MiB", "mean us"]]
    for row in sorted(rows, key=lambda row: -row["calls"] * row["latency_mean_us"])[:_MAX_ROWS]:
        counts = [str(row["calls"]), str(row["errors"]), _mib(row["bytes"])]
        table.append([row["syscall"], *counts, number(row["latency_mean_us"], 1)])
    return align(table) if rows else ""


def _format_modes(rows: Rows) -> str:
    table = [["files are", "by", "calls", "share", "MiB", "batch", "in flight", "mean us"]]
    for row in (row for row in rows if row["calls"]):
        means = [number(row["batch_mean"], 1), number(row["in_flight_mean"], 2)]
        counts = [str(row["calls"]), percent(row["call_share"]), _mib(row["bytes"])]
        op = {"write": "written"}.get(row["op"], f"{row['op']}ed" if row["op"] == "sync" else row["op"])
        table.append([op, row["mode"], *counts, *means, number(row["latency_mean_us"], 1)])
    return align(table) if len(table) > 1 else ""


def _format_accesses(rows: Rows) -> str:
    table = [["file, by calls", "", "calls", "MiB", "sequential", "strided", "pattern"]]
    for row in sorted(rows, key=lambda row: -int(row["bytes"]))[:_MAX_ROWS]:
        shares = [percent(row["sequential_share"]), percent(row["strided_share"])]
        table.append([row["name"], row["op"], str(row["calls"]), _mib(row["bytes"]), *shares, row["pattern"]])
    return "\n".join([align(table), *_tell_rest(rows)]) if rows else ""


def _format_faults(rows: Rows) -> str:
    table = [["file, by faults", "faults", "pages in", "dirtied", "written back", "pattern"]]
    for row in rows[:_MAX_ROWS]:
        keys = ("faults", "pages_in", "pages_dirtied", "pages_written_back")
        counts = [number(row[key], 0) for key in keys]
        table.append([row["name"], *counts, row["pattern"] or ABSENT])
    return "\n".join([align(table), *_tell_rest(rows)]) if rows else ""


def _tell_rest(rows: Rows) -> list[str]:
    return [f"{len(rows) - _MAX_ROWS} more lines in the JSON"] if len(rows) > _MAX_ROWS else []


def _format_losses(losses: Mapping[str, int]) -> str:
    lost = [f"{count} {what}" for what, count in losses.items() if count]
    return f"not counted in full: {', '.join(lost)}" if lost else ""


def _mib(size: int | None) -> str:
    return number(None if size is None else size / 2**20, 1)
