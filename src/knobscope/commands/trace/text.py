"""The profile of a trace as text for a terminal."""

from collections.abc import Mapping
from typing import Any

from knobscope.commands.trace.columns import ISSUE_TO_COMPLETION
from knobscope.text.formats import LEAST_REQUESTS, format_count, format_micros, format_rate, format_share, loosen_units
from knobscope.watch import Profile
from knobscope.watch.conclusion import conclude
from knobscope.watch.text import format_profile

__all__ = ["format_trace"]

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


def format_trace(profile: Profile) -> str:
    """Return a conclusion, the text of `knobscope watch` and, per operation, rate, latency and simpler measures."""
    counts: Mapping[str, Any] = profile
    odd = [f"{format_count(counts[key])} {phrase}" for key, phrase in _ODD.items() if counts.get(key)]
    latencies = {row["op"]: row for row in profile["latency"]}
    lines = [_describe(row, latencies.get(row["op"])) for row in profile["io_profile"] if row["requests"]]
    if counts["life"] != ISSUE_TO_COMPLETION:
        odd.append(f"no issue of a request is in it; latency and depth: {counts['life']}")
    head = f"{conclude(profile)}\n\n{profile['trace']} ({profile['format']})" + "".join(
        f"\n  {remark}" for remark in odd
    )
    return f"{head}\n{format_profile(profile)}\n" + "\n".join(lines) + "\n"


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
    return loosen_units(f"{row['op']}: {'; '.join(facts) or 'too few for a rate'}")
