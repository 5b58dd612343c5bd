"""The profile of a trace as text for a terminal."""

from collections.abc import Mapping
from typing import Any

from knobscope.commands.trace.columns import ISSUE_TO_COMPLETION
from knobscope.statistics.locality import Locality
from knobscope.text.formats import (
    LEAST_REQUESTS,
    UNKNOWN,
    format_count,
    format_micros,
    format_rate,
    format_seconds,
    format_share,
    format_size,
    loosen_units,
)
from knobscope.text.text_table import align
from knobscope.watch import Profile
from knobscope.watch.conclusion import conclude
from knobscope.watch.locality import TracedLocality, describe_locality
from knobscope.watch.text import format_profile

#: Counts of a trace that are worth a word when they are not 0.
_ODD = {
    "truncated_lines": "cut off at its end",
    "out_of_order": "requests out of order (sorted)",
    "completions_without_start": "completions without an issue (not counted)",
    "starts_without_completion": "issues without a completion (not in latency and depth)",
    "requeues": "requeued",
    "other_requests": "requests without a size or of another kind (not counted)",
    "lost_events": "lost events (not counted)",
}
#: A cache that saves less than this of the bytes read has no line.
_WORTH_A_LINE = 0.01


def format_trace(profile: Profile, locality: TracedLocality | None) -> str:
    """Return a conclusion, the text of `knobscope watch`, rates and latencies per operation, and locality of reads."""
    counts: Mapping[str, Any] = profile
    odd = [f"{format_count(counts[key])} {phrase}" for key, phrase in _ODD.items() if counts.get(key)]
    latencies = {row["op"]: row for row in profile["latency"]}
    lines = [_describe(row, latencies.get(row["op"])) for row in profile["io_profile"] if row["requests"]]
    if counts["life"] != ISSUE_TO_COMPLETION:
        odd.append(f"no issue of a request is in it; latency and depth: {counts['life']}")
    head = f"{conclude(profile)}\n\n{profile['trace']} ({profile['format']})" + "".join(
        f"\n  {remark}" for remark in odd
    )
    blocks = [format_profile(profile), "\n".join([*lines, ""])]
    reads = sum(row["requests"] or 0 for row in profile["io_profile"] if row["op"] == "read")
    if locality and reads >= LEAST_REQUESTS and (lines := _format_locality(locality)):
        blocks.append("\n".join([*lines, ""]))
    return f"{head}\n" + "\n".join(blocks)


def _format_locality(traced: TracedLocality) -> list[str]:
    """Return what a cache would save by its size and over time, and how requests spread over each file."""
    locality = traced.locality
    counted = "all of them" if locality.rate == 1 else f"a sample of {format_share(locality.rate)} of them"
    used, block = format_size(locality.working_set_bytes), format_size(locality.block_bytes)
    curve = [["a cache of", "saves of the bytes read"]]
    curve += [
        [format_size(point.cache_bytes), format_share(1 - point.miss_share)]
        for point in locality.curve
        if 1 - point.miss_share >= _WORTH_A_LINE
    ]
    files = [["file", "80 % of requests go to", "in ranges of", "cache saves of its reads"]]
    for heat in locality.files:
        if sum(part.reads + part.writes for part in heat.ranges) >= LEAST_REQUESTS:
            saved = UNKNOWN if heat.saved_share is None else format_share(heat.saved_share)
            hot = f"{format_share(heat.hot_share)} of it"
            files.append([traced.name(heat.file), hot, format_size(heat.range_bytes), saved])
    return [
        describe_locality(locality),
        loosen_units(f"{used} were read or written, in blocks of {block} ({counted} counted).{_over_time(locality)}"),
        *([align(curve)] if len(curve) > 1 else []),
        *(["", align(files)] if len(files) > 1 else []),
    ]


def _over_time(locality: Locality) -> str:
    windows = [window for window in locality.windows if window.working_set_bytes]
    sizes = [window.working_set_bytes for window in windows]
    missed = [window.miss_share for window in windows if window.miss_share is not None]
    if len(windows) < 2 or not missed:
        return ""
    text = (
        f" {len(windows)} of {len(locality.windows)} windows of {format_seconds(locality.windows[0].end_s)} have "
        f"requests, for {format_size(min(sizes))} to {format_size(max(sizes))} in each"
    )
    if locality.useful_cache_bytes is None:
        return f"{text}."
    saved = f"{format_share(1 - max(missed))} to {format_share(1 - min(missed))}"
    return f"{text}; that cache would save {saved} of what was read in one."


def _describe(row: Mapping[str, Any], latency: Mapping[str, Any] | None) -> str:
    facts = []
    if row["iops"] is not None and row["requests"] >= LEAST_REQUESTS:
        facts.append(f"{format_rate(row['iops'], 'requests/s')}, {format_rate(row['mib_per_s'], 'MiB/s')}")
    if latency:
        low, mean, high = (format_micros(latency[f"{name}_ns"] / 1e3) for name in ("min", "mean", "max"))
        facts.append(f"latency {low} to {high}, mean {mean}")
    for name, where in (("last_sector", "on the device"), ("file_last_sector", "in its file")):
        if row[f"{name}_share"] is not None and row["requests"] >= LEAST_REQUESTS:
            facts.append(f"{format_share(row[f'{name}_share'])} begin where the one before {where} ended")
    none = "too few for a rate" if row["requests"] < LEAST_REQUESTS else "no rate: all at the same moment"
    return loosen_units(f"{row['op']}: {'; '.join(facts) or none}")
