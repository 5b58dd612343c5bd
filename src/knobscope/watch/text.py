"""An I/O profile as text for a terminal."""

from collections.abc import Sequence
from typing import Any

from knobscope.watch.interface import Profile

__all__ = ["format_profile"]

_PARTS = ("own", "inode", "journal", "flush", "foreign")
_MAX_SIZES = 6
_MAX_DEPTHS = 8
_ABSENT = "-"


def format_profile(profile: Profile) -> str:
    """Return the profile in some lines: the run, its operations, whose they were, sizes, latency and depth."""
    rows = [row for row in profile["io_profile"] if row["device_requests"]]
    blocks = [_format_run(profile)]
    if not rows:
        return f"{blocks[0]}\nno requests reached the device\n"
    blocks.append(_format_operations(rows, profile["io_latency"]))
    if profile["monitor"] == "bpf":
        blocks += [_format_parts(rows), _format_sizes(profile["io_sizes"]), _format_depth(profile["queue_depth"])]
    return "\n\n".join(block for block in blocks if block) + "\n"


def _format_run(profile: Profile) -> str:
    facts = [f"{profile['duration_s']:.3f} s", f"CPU {_number(profile['cpu_s'], 2)} s", f"monitor {profile['monitor']}"]
    if profile["monitor"] == "bpf":
        facts += [f"scope {profile['scope']}", f"lost events {profile['lost_events']}"]
        facts += [f"unattributed {_share(profile['unattributed_share'])}"]
    return ", ".join(facts)


def _format_operations(rows: Sequence[dict[str, Any]], latency: Sequence[dict[str, Any]]) -> str:
    table = [["", "requests", "MiB", "aligned", "sequential", "p50 us", "p99 us"]]
    for row in rows:
        times = [entry for entry in latency if entry["op"] == row["op"]]
        table.append(
            [
                row["op"],
                str(row["requests"]),
                _number(None if row["bytes"] is None else row["bytes"] / 2**20, 1),
                _share(row["aligned_share"]),
                _share(row["sequential_share"]),
                _number(_find_quantile(times, 0.5), 0),
                _number(_find_quantile(times, 0.99), 0),
            ]
        )
    return _align(table)


def _format_parts(rows: Sequence[dict[str, Any]]) -> str:
    table = [["caused by", *_PARTS]]
    for row in rows:
        table.append([row["op"], *(_share(row[f"{part}_requests"] / row["device_requests"]) for part in _PARTS)])
    return _align(table)


def _format_sizes(sizes: Sequence[dict[str, Any]]) -> str:
    lines = []
    for op in dict.fromkeys(row["op"] for row in sizes):
        rows = sorted((row for row in sizes if row["op"] == op), key=lambda row: -int(row["requests"]))
        total = sum(row["requests"] for row in rows)
        shown = [f"{row['bytes'] / 1024:g} KiB {_share(row['requests'] / total)}" for row in rows[:_MAX_SIZES]]
        rest = [f"{len(rows) - _MAX_SIZES} other sizes"] if len(rows) > _MAX_SIZES else []
        lines.append(f"{op} sizes: {', '.join(shown + rest)}")
    return "\n".join(lines)


def _format_depth(rows: Sequence[dict[str, Any]]) -> str:
    """Describe the whole device, and its hardware queues where there are several."""
    queues = sorted({row["queue"] for row in rows})
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
    shares = ", ".join(f"{depth}: {_share(busy[depth] / total)}" for depth in longest)
    return f"{name}: busy {_share(total / sum(times.values()))}, mean depth {mean:.2f} while busy ({shares})"


def _find_quantile(histogram: Sequence[dict[str, Any]], share: float) -> float | None:
    """Return the upper edge of the bucket that the quantile lies in, us; None for an empty histogram."""
    left = share * sum(row["requests"] for row in histogram)
    for row in histogram:
        left -= row["requests"]
        if left <= 0:
            return float(row["high_us"])
    return None


def _number(value: float | None, digits: int) -> str:
    return _ABSENT if value is None else f"{value:.{digits}f}"


def _share(value: float | None) -> str:
    return _ABSENT if value is None else f"{100 * value:.1f} %"


def _align(table: Sequence[Sequence[str]]) -> str:
    widths = [max(len(cell) for cell in column) for column in zip(*table, strict=True)]
    lines = []
    for first, *rest in table:
        cells = [first.ljust(widths[0]), *(cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))]
        lines.append("  ".join(cells).rstrip())
    return "\n".join(lines)
