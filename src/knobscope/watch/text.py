"""An I/O profile as text for a terminal."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from knobscope.text.formats import (
    LEAST_REQUESTS,
    UNKNOWN,
    format_count,
    format_decimals,
    format_seconds,
    format_share,
    format_size,
    loosen_units,
    plural,
)
from knobscope.text.text_table import align
from knobscope.watch.interface import Profile
from knobscope.watch.other_programs import NOTICEABLE_SHARE, describe_others, sum_shares
from knobscope.watch.text_calls import format_calls

_PARTS = ("own", "inode", "journal", "flush", "foreign")
_MAX_PARTS = 6
_MAX_DEPTHS = 8
_MAX_FILES = 12
_LEAST_ERROR = 0.0005  # smaller ones would be shown as 0

#: Counter of what is missing -> the noun for one of what it counts, and what is said of them, be it one or many.
_LOSSES = {
    "lost_events": ("request", " found no room in a table of the kernel side"),
    "missed_events": ("event", ", of any device, found the kernel side busy with another on the same processor"),
    "hidden_completions": (
        "request",
        " ended unseen: counted as in flight until the tag is used again; in light mode not counted",
    ),
    "moved_processes": (
        "time",
        " a followed process left its control group: its I/O counts, its CPU time since does not",
    ),
    "starts_without_completion": ("request", " issued and not seen to end"),
    "completions_without_start": ("request", " seen to end, but not to start"),
    "files_overflow": ("request", " of more files than can be counted apart (found by address)"),
    "addresses_overflow": ("request", " of a file that is not known"),
    "unnamed_submitters": ("time", " the name of a thread found no room (its requests are those of `other`)"),
    "failed_requests": ("request", " failed"),
    "passthrough_requests": (
        "command",
        " went to the device past the block layer (ioctl, io_uring_cmd, the driver itself)",
    ),
    "requeues": ("request", " given back by the driver and issued again"),
}
_OF_COMMAND = "caused by the command (flushes have no owner: all that reached the device count)"
_OF_DEVICE = "everything that reached the device, whoever caused it"

Rows = Sequence[Mapping[str, Any]]


def format_profile(profile: Profile) -> str:
    """Return the profile as text; with scope `process` what the command and what the whole device did stand apart."""
    rows = [row for row in profile["io_profile"] if row["device_requests"]]
    levels = format_levels(profile.get("levels", ()))
    calls = format_calls(profile)
    if not rows:
        blocks = [f"{_format_run(profile)}\nno requests reached the device", *calls, format_losses(profile)]
    elif profile["monitor"] == "procfs":
        blocks = [_format_run(profile), f"{_OF_DEVICE}\n{_format_operations(rows, profile)}", levels]
    elif profile["monitor"] == "light":
        counted = [_OF_DEVICE + "\n" + _format_operations(rows, profile), _format_sizes(profile["io_sizes"])]
        depth = f"device: mean depth {format_decimals(profile['mean_depth'], 2)} over the whole time, by Little's law"
        blocks = [_format_run(profile), *counted, *calls, depth, levels, format_losses(profile)]
    else:
        counted = [_format_operations(rows, profile), _format_sizes(profile["io_sizes"])]
        counted += [_format_files(profile["files"]), *calls]
        whole = [_format_parts(rows), _format_submitters(profile.get("submitters", []))]
        whole += [_format_depth(profile["queue_depth"]), levels]
        if profile["scope"] == "process":
            counted[0] = f"{_OF_COMMAND}\n{counted[0]}"
            whole[0] = f"{_OF_DEVICE}\n{whole[0]}"
        blocks = [_format_run(profile), *counted, *whole, format_losses(profile)]
    return loosen_units("\n\n".join(block for block in blocks if block)) + "\n"


def _format_run(profile: Profile) -> str:
    if profile["monitor"] == "trace":
        return f"{format_seconds(profile['duration_s'])}, aligned to {format_size(profile['unit'])}"
    facts = [
        format_seconds(profile["duration_s"]),
        f"CPU {format_seconds(profile['cpu_s'])}",
        f"all processors busy for {format_share(profile['machine_cpu_share'])}{_format_others(profile)}",
        f"monitor {profile['monitor']}",
    ]
    if profile["monitor"] == "bpf":
        facts.append(f"scope {profile['scope']}")
        facts += [f"unattributed {format_share(profile['unattributed_share'])} of the device's data requests"]
    return ", ".join(facts)


def _format_others(profile: Profile) -> str:
    """Name programs that kept processors busy, other than the command."""
    others = profile.get("other_programs", [])
    if sum_shares(others) < NOTICEABLE_SHARE:
        return ""
    return f" (other programs: {describe_others(others)})"


def format_losses(profile: Mapping[str, Any]) -> str:
    """Name all that was not counted, or not in full; every counter that is not zero has a line."""
    lines = [f"{plural(profile[key], noun)}{rest}" for key, (noun, rest) in _LOSSES.items() if profile.get(key)]
    excess, shortfall, error = (profile.get(name) or 0 for name in ("depth_excess", "depth_shortfall", "busy_error"))
    if max(excess, shortfall, error) >= _LEAST_ERROR:
        lines.append(
            f"because of what was not seen the mean depth is too high by at most {format_decimals(excess, 2)} or too "
            f"low by at most {format_decimals(shortfall, 2)}, the busy time wrong by at most {format_share(error)} of "
            "the run"
        )
    if unwritten := profile.get("unwritten_bytes"):
        lines.append(
            f"up to {format_size(unwritten)} written to files had not reached the device: in the page cache, or deleted"
        )
    lines += profile.get("limits", ())
    text = "\n".join(["not counted, or not in full:", *(f"  {line}" for line in lines)])
    return loosen_units(text) if lines else ""


def format_levels(rows: Rows) -> str:
    """Show a stack of storage from the watched device down."""
    table = [["all that reached each level of storage", "read MiB", "per byte above", "written MiB", "per byte above"]]
    for row in rows:
        cells = [" ".join(row["devices"])]
        for op in ("read", "write"):
            cells += [format_decimals(row[f"{op}_bytes"] / 2**20, 1), format_decimals(row[f"{op}_amplification"], 2)]
        table.append(cells)
    return align(table) if rows else ""


def _format_operations(rows: Rows, profile: Profile) -> str:
    """Show the operations; latencies are exact where single requests are known, else the end of a bucket ("<=")."""
    is_exact = "latency" in profile
    sign = "" if is_exact else " <="
    table = [["", "requests", "MiB", "aligned", "sequential", f"p50 µs{sign}", f"p99 µs{sign}"]]
    for row in rows:
        table.append(
            [
                row["op"],
                format_count(row["requests"]),
                format_decimals(None if row["bytes"] is None else row["bytes"] / 2**20, 1),
                _share(row, "aligned"),
                _share(row, "sequential"),
                *(_list_exact if is_exact else _list_edges)(row["op"], profile),
            ]
        )
    return align(table)


def _share(row: Mapping[str, Any], kind: str) -> str:
    """Show a share of the requests of a row; of a few it says nothing."""
    return format_share(row[f"{kind}_share"] if row["requests"] >= LEAST_REQUESTS else None)


def _of(total: int, requests: int) -> str:
    """Show a part of all requests: as a share, or as their number where they are few."""
    return format_share(requests / total) if total >= LEAST_REQUESTS else format_count(requests)


def _list_exact(op: str, profile: Profile) -> list[str]:
    """Return p50 and p99 of the single requests of a trace."""
    latencies: Rows = [row for row in profile["latency"] if row["op"] == op]
    return [format_decimals(latencies[0][f"{name}_ns"] / 1e3 if latencies else None, 1) for name in ("p50", "p99")]


def _list_edges(op: str, profile: Profile) -> list[str]:
    """Return the ends of the buckets that p50 and p99 lie in: of requests that are only counted, no more is known."""
    times = [row for row in profile["io_latency"] if row["op"] == op]
    return [format_decimals(find_quantile(times, share), 0) for share in (0.5, 0.99)]


def _format_parts(rows: Rows) -> str:
    table = [["caused by", *_PARTS]]
    if None in (row["own_requests"] for row in rows):
        return ""  # not known
    for row in rows:
        table.append([row["op"], *(_of(row["device_requests"], row[f"{part}_requests"]) for part in _PARTS)])
    return align(table)


def _format_submitters(submitters: Rows) -> str:
    return _format_parts_of(submitters, "submitted by", lambda row: str(row["submitter"]), "other")


def _format_sizes(sizes: Rows) -> str:
    return _format_parts_of(sizes, "sizes", lambda row: format_size(row["bytes"]), "other size")


def _format_parts_of(counts: Rows, title: str, name: Callable[[Mapping[str, Any]], str], noun: str) -> str:
    """Return a line for each operation: who or what has most of its requests, and how many more there are."""
    lines = []
    for op in dict.fromkeys(row["op"] for row in counts):
        rows = sorted((row for row in counts if row["op"] == op), key=lambda row: -int(row["requests"]))
        total = sum(row["requests"] for row in rows)
        shown = [f"{name(row)} {_of(total, row['requests'])}" for row in rows[:_MAX_PARTS]]
        remainder = [plural(len(rows) - _MAX_PARTS, noun)] if len(rows) > _MAX_PARTS else []
        lines.append(f"{op} {title}: {', '.join(shown + remainder)}")
    return "\n".join(lines)


def _format_depth(rows: Rows) -> str:
    """Describe the whole device, and its hardware queues where there are several."""
    queues = sorted({row["queue"] for row in rows})
    if not rows:
        return ""  # not known
    return "\n".join(_format_queue(rows, queue) for queue in (queues if len(queues) > 2 else [-1]))


def _format_queue(rows: Rows, queue: int) -> str:
    times = {row["depth"]: row["time_ns"] for row in rows if row["queue"] == queue}
    busy = {depth: time_ns for depth, time_ns in times.items() if depth}
    name = "device" if queue < 0 else f"hardware queue {queue}"
    if not busy:
        return f"{name}: idle"
    total = sum(busy.values())
    mean = sum(depth * time_ns for depth, time_ns in busy.items()) / total
    longest = sorted(sorted(busy, key=lambda depth: -busy[depth])[:_MAX_DEPTHS])
    shares = ", ".join(f"{depth}: {format_share(busy[depth] / total)}" for depth in longest)
    busy_share = format_share(total / sum(times.values()))
    return f"{name}: busy {busy_share}, mean depth {format_decimals(mean, 2)} while busy ({shares})"


def _format_files(rows: Rows) -> str:
    """Show the files with most bytes; the order of requests is not known where only their addresses are."""
    table = [["file", "", "requests", "MiB", "sequential", "pattern"]]
    for row in sorted(rows, key=lambda row: -int(row["bytes"]))[:_MAX_FILES]:
        pattern = row["pattern"] or UNKNOWN
        size = format_decimals(row["bytes"] / 2**20, 1)
        table.append([row["file"], row["op"], format_count(row["requests"]), size, _share(row, "sequential"), pattern])
    remainder = [f"{len(rows) - _MAX_FILES} more lines in the JSON"] if len(rows) > _MAX_FILES else []
    return "\n".join([align(table), *remainder]) if rows else ""


def find_quantile(histogram: Rows, share: float) -> float | None:
    """Return the upper edge of the bucket that the quantile lies in, us; None for an empty histogram."""
    remaining = share * sum(row["requests"] for row in histogram)
    for row in histogram:
        remaining -= row["requests"]
        if remaining <= 0:
            return float(row["high_us"])
    return None
