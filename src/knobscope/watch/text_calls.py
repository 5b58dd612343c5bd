"""System calls, page faults and waits of a profile as text for a terminal."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.text.formats import UNKNOWN, format_count, format_decimals, format_share
from knobscope.text.text_table import align
from knobscope.watch.interface import Profile

_MAX_ROWS = 12

Rows = Sequence[Mapping[str, Any]]


def format_calls(profile: Profile) -> list[str]:
    """Return blocks on calls, ways of I/O, files, faults, waits and what is lost: all but the block layer."""
    blocks = [
        _format_syscalls(profile.get("syscalls", [])),
        _format_modes(profile.get("io_modes", [])),
        _format_accesses(profile.get("file_access", [])),
        _format_faults(profile.get("faults", [])),
        _format_losses(profile.get("lost_syscalls", {})),
        _format_losses(profile.get("lost_faults", {})),
    ]
    if "waits" in profile:
        from knobscope.watch.text_waits import format_waits

        blocks += [*format_waits(profile), _format_losses(profile.get("lost_waits", {}))]
    return [block for block in blocks if block]


def _format_syscalls(rows: Rows) -> str:
    table = [["system call", "calls", "errors", "MiB", "mean µs"]]
    for row in sorted(rows, key=lambda row: -row["calls"] * row["latency_mean_us"])[:_MAX_ROWS]:
        counts = [format_count(row["calls"]), format_count(row["errors"]), _mib(row["bytes"])]
        table.append([row["syscall"], *counts, format_decimals(row["latency_mean_us"], 1)])
    return align(table) if rows else ""


def _format_modes(rows: Rows) -> str:
    table = [["files are", "by", "calls", "share", "MiB", "batch", "in flight", "mean µs"]]
    for row in (row for row in rows if row["calls"]):
        means = [format_decimals(row["batch_mean"], 1), format_decimals(row["in_flight_mean"], 2)]
        counts = [format_count(row["calls"]), format_share(row["call_share"]), _mib(row["bytes"])]
        op = {"write": "written"}.get(row["op"], f"{row['op']}ed" if row["op"] == "sync" else row["op"])
        table.append([op, row["mode"], *counts, *means, format_decimals(row["latency_mean_us"], 1)])
    return align(table) if len(table) > 1 else ""


def _format_accesses(rows: Rows) -> str:
    table = [["file, by calls", "", "calls", "MiB", "sequential", "strided", "pattern"]]
    for row in sorted(rows, key=lambda row: -int(row["bytes"]))[:_MAX_ROWS]:
        shares = [format_share(row["sequential_share"]), format_share(row["strided_share"])]
        table.append([row["name"], row["op"], format_count(row["calls"]), _mib(row["bytes"]), *shares, row["pattern"]])
    return "\n".join([align(table), *_tell_rest(rows)]) if rows else ""


def _format_faults(rows: Rows) -> str:
    table = [["file, by faults", "faults", "pages in", "dirtied", "written back", "pattern"]]
    for row in rows[:_MAX_ROWS]:
        keys = ("faults", "pages_in", "pages_dirtied", "pages_written_back")
        counts = [format_count(row[key]) for key in keys]
        table.append([row["name"], *counts, row["pattern"] or UNKNOWN])
    return "\n".join([align(table), *_tell_rest(rows)]) if rows else ""


def _tell_rest(rows: Rows) -> list[str]:
    return [f"{len(rows) - _MAX_ROWS} more lines in the JSON"] if len(rows) > _MAX_ROWS else []


def _format_losses(losses: Mapping[str, int]) -> str:
    lost = [f"{format_count(count)} {noun}" for noun, count in losses.items() if count]
    return f"not counted in full: {', '.join(lost)}" if lost else ""


def _mib(size: int | None) -> str:
    return format_decimals(None if size is None else size / 2**20, 1)
