"""An I/O profile as text for a terminal."""

from collections.abc import Sequence
from typing import Any

from knobscope.watch.interface import Profile
from knobscope.watch.layout import ABSENT, align, number, percent
from knobscope.watch.text_calls import format_calls

__all__ = ["format_profile"]

_PARTS = ("own", "inode", "journal", "flush", "foreign")
_MAX_SIZES = 6
_MAX_DEPTHS = 8
_MAX_FILES = 12
_MAX_SUBMITTERS = 6


def format_profile(profile: Profile) -> str:
    """Return the profile in some lines: the run, its operations, whose they were, sizes, latency and depth."""
    rows = [row for row in profile["io_profile"] if row["device_requests"]]
    blocks = [_format_run(profile)]
    if not rows:
        return "\n\n".join([f"{blocks[0]}\nno requests reached the device", *format_calls(profile)]) + "\n"
    blocks.append(_format_operations(rows, profile["io_latency"]))
    if profile["monitor"] != "procfs":
        blocks += [_format_parts(rows), _format_submitters(profile.get("submitters", []))]
        blocks += [_format_sizes(profile["io_sizes"]), _format_depth(profile["queue_depth"])]
        blocks += [_format_files(profile["files"]), *format_calls(profile)]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _format_run(profile: Profile) -> str:
    if profile["monitor"] == "trace":
        return f"{profile['duration_s']:.3f} s, aligned to {profile['unit']} bytes"
    facts = [
        f"{profile['duration_s']:.3f} s",
        f"CPU {number(profile['cpu_s'], 2)} s",
        f"monitor {profile['monitor']}",
    ]
    if profile["monitor"] == "bpf":
        facts += [f"scope {profile['scope']}", f"lost events {profile['lost_events']}"]
        facts += [f"unattributed {percent(profile['unattributed_share'])}"]
    return ", ".join(facts)


def _format_operations(rows: Sequence[dict[str, Any]], latency: Sequence[dict[str, Any]]) -> str:
    table = [["", "requests", "MiB", "aligned", "sequential", "p50 us", "p99 us"]]
    for row in rows:
        times = [entry for entry in latency if entry["op"] == row["op"]]
        table.append(
            [
                row["op"],
                str(row["requests"]),
                number(None if row["bytes"] is None else row["bytes"] / 2**20, 1),
                percent(row["aligned_share"]),
                percent(row["sequential_share"]),
                number(_find_quantile(times, 0.5), 0),
                number(_find_quantile(times, 0.99), 0),
            ]
        )
    return align(table)


def _format_parts(rows: Sequence[dict[str, Any]]) -> str:
    table = [["caused by", *_PARTS]]
    if None in (row["own_requests"] for row in rows):
        return ""  # not known
    for row in rows:
        table.append([row["op"], *(percent(row[f"{part}_requests"] / row["device_requests"]) for part in _PARTS)])
    return align(table)


def _format_submitters(submitters: Sequence[dict[str, Any]]) -> str:
    lines = []
    for op in dict.fromkeys(row["op"] for row in submitters):
        rows = sorted((row for row in submitters if row["op"] == op), key=lambda row: -int(row["requests"]))
        total = sum(row["requests"] for row in rows)
        shown = [f"{row['submitter']} {percent(row['requests'] / total)}" for row in rows[:_MAX_SUBMITTERS]]
        rest = [f"{len(rows) - _MAX_SUBMITTERS} others"] if len(rows) > _MAX_SUBMITTERS else []
        lines.append(f"{op} submitted by: {', '.join(shown + rest)}")
    return "\n".join(lines)


def _format_sizes(sizes: Sequence[dict[str, Any]]) -> str:
    lines = []
    for op in dict.fromkeys(row["op"] for row in sizes):
        rows = sorted((row for row in sizes if row["op"] == op), key=lambda row: -int(row["requests"]))
        total = sum(row["requests"] for row in rows)
        shown = [f"{row['bytes'] / 1024:g} KiB {percent(row['requests'] / total)}" for row in rows[:_MAX_SIZES]]
        rest = [f"{len(rows) - _MAX_SIZES} other sizes"] if len(rows) > _MAX_SIZES else []
        lines.append(f"{op} sizes: {', '.join(shown + rest)}")
    return "\n".join(lines)


def _format_depth(rows: Sequence[dict[str, Any]]) -> str:
    """Describe the whole device, and its hardware queues where there are several."""
    queues = sorted({row["queue"] for row in rows})
    if not rows:
        return ""  # not known
    return "\n".join(_format_queue(rows, queue) for queue in (queues if len(queues) > 2 else [-1]))


def _format_queue(rows: Sequence[dict[str, Any]], queue: int) -> str:
    times = {row["depth"]: row["time_ns"] for row in rows if row["queue"] == queue}
    busy = {depth: time_ns for depth, time_ns in times.items() if depth}
    name = "device" if queue < 0 else f"hardware queue {queue}"
    if not busy:
        return f"{name}: idle"
    total = sum(busy.values())
    mean = sum(depth * time_ns for depth, time_ns in busy.items()) / total
    longest = sorted(sorted(busy, key=lambda depth: -busy[depth])[:_MAX_DEPTHS])
    shares = ", ".join(f"{depth}: {percent(busy[depth] / total)}" for depth in longest)
    return f"{name}: busy {percent(total / sum(times.values()))}, mean depth {mean:.2f} while busy ({shares})"


def _format_files(rows: Sequence[dict[str, Any]]) -> str:
    """Show the files with most bytes; the order of requests is not known where only their addresses are."""
    table = [["file", "", "requests", "MiB", "sequential", "pattern"]]
    for row in sorted(rows, key=lambda row: -int(row["bytes"]))[:_MAX_FILES]:
        pattern = row["pattern"] or ABSENT
        size = number(row["bytes"] / 2**20, 1)
        table.append([row["file"], row["op"], str(row["requests"]), size, percent(row["sequential_share"]), pattern])
    rest = [f"{len(rows) - _MAX_FILES} more lines in the JSON"] if len(rows) > _MAX_FILES else []
    return "\n".join([align(table), *rest]) if rows else ""


def _find_quantile(histogram: Sequence[dict[str, Any]], share: float) -> float | None:
    """Return the upper edge of the bucket that the quantile lies in, us; None for an empty histogram."""
    left = share * sum(row["requests"] for row in histogram)
    for row in histogram:
        left -= row["requests"]
        if left <= 0:
            return float(row["high_us"])
    return None
