"""From samples to figures, and from figures to a page."""

from __future__ import annotations

import os
import statistics
from pathlib import Path
from typing import Any

from conditions import CONDITIONS
from load import DEPTHS, Sample

_BEGIN, _END = "<!-- benchmarks/monitor: begin -->", "<!-- benchmarks/monitor: end -->"
_BASE = CONDITIONS[0].name


def summarise(samples: list[Sample], reasons: dict[str, str], rounds: int, seconds: float) -> dict[str, Any]:
    """Return medians over the rounds: a row per target, condition and depth."""
    rows = []
    for target in dict.fromkeys(sample.target for sample in samples):
        for condition in dict.fromkeys(sample.condition for sample in sorted(samples, key=_order)):
            for depth in DEPTHS:
                key = (target, condition, depth)
                rows.append({"target": target, "condition": condition, "depth": depth, **_compare(samples, key)})
    machine = {"kernel": os.uname().release, "processors": os.cpu_count(), "load_average": os.getloadavg()[0]}
    return {"machine": machine, "rounds": rounds, "seconds": seconds, "unavailable": reasons, "rows": rows}


def _order(sample: Sample) -> int:
    return [condition.name for condition in CONDITIONS].index(sample.condition)


def _compare(samples: list[Sample], key: tuple[str, str, int]) -> dict[str, Any]:
    """Return the figures of one row; the ratio is that of the medians, its range that of the single rounds."""
    target, _, depth = key
    own = [sample for sample in samples if (sample.target, sample.condition, sample.depth) == key]
    base = [sample for sample in samples if (sample.target, sample.condition, sample.depth) == (target, _BASE, depth)]
    loads = {sample.round: sample for sample in own if sample.cost_ns is None}
    base_loads = {sample.round: sample.iops for sample in base if sample.cost_ns is None}
    ratios = [sample.iops / base_loads[number] for number, sample in loads.items()]
    costs = [sample.cost_ns for sample in own if sample.cost_ns is not None]
    missed = [sample.missed for sample in own if sample.missed is not None]
    iops = statistics.median(sample.iops for sample in loads.values())
    return {
        "iops": iops,
        "iops_ratio": iops / statistics.median(base_loads.values()),
        "iops_ratio_min": min(ratios),
        "iops_ratio_max": max(ratios),
        "cost_ns": statistics.median(costs),
        "cost_ns_min": min(costs),
        "cost_ns_max": max(costs),
        "cpu_share": statistics.median(sample.cpu_share for sample in loads.values()),
        "requests": sum(sample.requests for sample in own),
        "missed": sum(missed) if missed else None,
    }


def format_tables(summary: dict[str, Any]) -> str:
    """Return Markdown: a table per target, and why rows are missing."""
    machine = summary["machine"]
    lines = [
        f"Kernel {machine['kernel']}, {machine['processors']} processors; medians of {summary['rounds']} rounds of "
        f"{summary['seconds']:g} s each, in brackets the lowest and the highest. ns: time in BPF programs per request. "
        "IOPS: against nothing. CPU: of the tool's own processes, in % of one processor, at depth 32. Missed: requests "
        "of fio that the tool did not count.",
    ]
    for target in dict.fromkeys(row["target"] for row in summary["rows"]):
        base = {
            row["depth"]: row["iops"]
            for row in summary["rows"]
            if row["target"] == target and row["condition"] == _BASE
        }
        lines += ["", f"**{target}**: {base[1]:,.0f} IOPS at depth 1, {base[32]:,.0f} at depth 32", ""]
        lines += ["| | ns, depth 1 | ns, depth 32 | IOPS, depth 1 | IOPS, depth 32 | CPU | missed |", "|" + "---|" * 7]
        lines += [
            _format_row(summary, target, name) for name in dict.fromkeys(row["condition"] for row in summary["rows"])
        ]
    lines += ["", *(f"- {name}: {reason}" for name, reason in summary["unavailable"].items())]
    return "\n".join(lines).rstrip() + "\n"


def _format_row(summary: dict[str, Any], target: str, condition: str) -> str:
    shallow, deep = (
        next(
            row
            for row in summary["rows"]
            if (row["target"], row["condition"], row["depth"]) == (target, condition, depth)
        )
        for depth in DEPTHS
    )
    cells = [condition]
    cells += [f"{row['cost_ns']:.0f} [{row['cost_ns_min']:.0f}–{row['cost_ns_max']:.0f}]" for row in (shallow, deep)]
    cells += [
        f"{row['iops_ratio']:.2f} [{row['iops_ratio_min']:.2f}–{row['iops_ratio_max']:.2f}]" for row in (shallow, deep)
    ]
    missed = (
        "-"
        if shallow["missed"] is None
        else f"{shallow['missed'] + deep['missed']} of {shallow['requests'] + deep['requests']}"
    )
    return "| " + " | ".join([*cells, f"{100 * deep['cpu_share']:.1f} %", missed]) + " |"


def write_between_markers(page: Path, text: str) -> None:
    """Replace what stands between the markers of a page; ValueError when it has none."""
    head, begin, remainder = page.read_text().partition(_BEGIN)
    _, end, tail = remainder.partition(_END)
    if not begin or not end:
        raise ValueError(f"{page}: expected the lines {_BEGIN} and {_END}")
    page.write_text(f"{head}{_BEGIN}\n{text}{_END}{tail}")
