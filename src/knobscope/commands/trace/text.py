"""The profile of a trace as text for a terminal."""

from collections.abc import Mapping
from typing import Any

from knobscope.watch import Profile
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
    """Return the text of `knobscope watch` and, per operation, rate, latency and order by simpler measures."""
    odd = [f"{profile.get(key)} {words}" for key, words in _ODD.items() if profile.get(key)]
    latencies = {row["op"]: row for row in profile["latency"]}
    lines = [_describe(row, latencies.get(row["op"])) for row in profile["io_profile"] if row["requests"]]
    head = f"{profile['trace']} ({profile['format']})" + "".join(f"\n  {words}" for words in odd)
    return f"{head}\n{format_profile(profile)}\n" + "\n".join(lines) + "\n"


def _describe(row: Mapping[str, Any], latency: Mapping[str, Any] | None) -> str:
    facts = []
    if row["iops"] is not None:
        facts.append(f"{row['iops']:.2f} requests/s, {row['mib_per_s']:.2f} MiB/s")
    if latency:
        low, mean, high = (latency[f"{name}_ns"] / 1e3 for name in ("min", "mean", "max"))
        facts.append(f"latency {low:.1f} to {high:.1f} us, mean {mean:.1f} us")
    for name, where in (("last_sector", "on the device"), ("file_last_sector", "in its file")):
        if row[f"{name}_share"] is not None:
            facts.append(f"{100 * row[f'{name}_share']:.1f} % begin where the one before {where} ended")
    return f"{row['op']}: " + "; ".join(facts)
