"""The first sentence of a profile: what most requests are, and how busy they keep the device."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.text.formats import (
    LEAST_REQUESTS,
    format_decimals,
    format_micros,
    format_share,
    format_size,
    loosen_units,
    plural,
)
from knobscope.watch.profile import Profile

_MOSTLY = 0.5
_NEARLY_ALL = 0.995


def conclude(profile: Profile) -> str:
    """Return the most important facts of a profile in one sentence."""
    rows: list[Mapping[str, Any]] = [row for row in profile["io_profile"] if row["requests"]]
    # Without BPF requests are those of the whole device, and nobody knows whose flush a flush is.
    is_own = profile["scope"] == "process" and profile["monitor"] == "bpf"
    shared = [row for row in rows if not (is_own and row["op"] == "flush")]
    total = sum(row["requests"] for row in shared)
    whose = " of the command" if is_own else ""
    if not total:
        return f"No request{whose} reached the device."
    if total < LEAST_REQUESTS:
        return loosen_units(f"Only {plural(total, 'request')}{whose}: too few for shares and rates.")
    main = max(shared, key=lambda row: int(row["requests"]))
    facts = [
        f"{_describe_share(main['requests'], total)} {plural(total, 'request')}{whose} are "
        f"{_name(main['op'])}{_describe_size(profile, main)}{_describe_order(main)}",
        *_describe_busy(profile),
        *_describe_flushes(profile, rows, main),
    ]
    return loosen_units("; ".join(facts)) + "."


def sum_depths(rows: Sequence[Mapping[str, Any]]) -> tuple[float, float] | None:
    """Return the share of the time in which the device was busy, and the mean depth while it was; None: not known."""
    times = {row["depth"]: row["time_ns"] for row in rows if row["queue"] == -1}
    busy = sum(time_ns for depth, time_ns in times.items() if depth)
    if not busy:
        return None
    return busy / sum(times.values()), sum(depth * time_ns for depth, time_ns in times.items()) / busy


def _describe_share(part: int, total: int) -> str:
    is_nearly_all = part / total >= _NEARLY_ALL
    return f"All {'' if part == total else 'but a few '}of" if is_nearly_all else f"{format_share(part / total)} of"


def _name(op: str) -> str:
    return "flushes" if op == "flush" else f"{op}s"


def _describe_size(profile: Profile, row: Mapping[str, Any]) -> str:
    sizes = {size["bytes"]: size["requests"] or 0 for size in profile["io_sizes"] if size["op"] == row["op"]}
    if not sizes:
        return ""
    size = max(sizes, key=lambda bytes_: sizes[bytes_])
    share = sizes[size] / sum(sizes.values())
    return f", {'all' if share == 1 else 'most'} of {format_size(size)}" if share >= _MOSTLY else ""


def _describe_order(row: Mapping[str, Any]) -> str:
    share = row.get("sequential_share")
    return "" if share is None else f", {format_share(share)} sequential"


def _describe_busy(profile: Profile) -> list[str]:
    depths = sum_depths(profile["queue_depth"])
    if depths is None:
        return []
    share, depth = depths
    # A trace may hold the requests of one command, or of some files.
    busy = "requests of the trace are under way" if profile["monitor"] == "trace" else "the device is busy"
    return [f"{busy} for {format_share(share)} of the time, with {format_decimals(depth, 1)} in flight"]


def _describe_flushes(profile: Profile, rows: Sequence[Mapping[str, Any]], main: Mapping[str, Any]) -> list[str]:
    flushes = next((row["requests"] for row in rows if row["op"] == "flush"), 0)
    times: Sequence[Mapping[str, Any]] = [row for row in profile["io_latency"] if row["op"] == "flush"]
    if not flushes or not times or main["op"] == "flush":
        return []
    mean = sum(row["requests"] * (row["low_us"] + row["high_us"]) / 2 for row in times)
    count = sum(row["requests"] for row in times)
    return [f"{plural(flushes, 'flush', 'flushes')} of {format_micros(mean / count)} on average"] if count else []
