"""A run as text: what ran, how it ended, throughput over time, I/O, and the runs next to it."""

from collections.abc import Iterator, Sequence

from knobscope.commands.show.reading import ShownRun
from knobscope.specs import value_text
from knobscope.tables import RunRow
from knobscope.text.budgets import describe_budget, sum_parts
from knobscope.text.formats import (
    UNKNOWN,
    format_count,
    format_decimals,
    format_micros,
    format_rate,
    format_seconds,
    format_share,
    format_size,
    loosen_units,
    plural,
)
from knobscope.text.text_table import align
from knobscope.watch.text_waits import format_classes

_BARS = "▁▂▃▄▅▆▇█"


def format_run(shown: ShownRun) -> str:
    """Return the page, in blocks."""
    blocks = [_head(shown), _knobs(shown), _outcome(shown), _throughput(shown), _requests(shown)]
    blocks += [_waits(shown), _neighbours(shown)]
    return loosen_units("\n\n".join(block for block in blocks if block)) + "\n"


def draw_sparkline(values: Sequence[float]) -> str:
    """Return a bar per value, from 0 to the largest."""
    top = max(values, default=0)
    return "".join(_BARS[round(value / top * (len(_BARS) - 1))] if top else _BARS[0] for value in values)


def _head(shown: ShownRun) -> str:
    run = shown.record["run"]
    kind = ", the default configuration" if run["is_sentinel"] else ""
    return "\n".join(
        [
            f"run {run['run_id']} of study {run['study']}",
            f"{run['dbms']} {run['dbms_version']} on {run['device']} ({run['tier']}), {run['workload']}",
            f"block {run['block_id']}, position {run['position']}{kind}",
            f"began {run['started_at'][:19]} UTC, session {run['session']}, on {run['machine']}",
        ]
    )


def _knobs(shown: ShownRun) -> str:
    """Return what was asked and what is in force; a star marks what differs from the default configuration."""
    knob_rows = {row["knob"]: row for row in shown.record.get("effective_values", [])}
    names = [*knob_rows, *(name for name in shown.configuration if name not in knob_rows)]
    if not names:
        return ""
    table = [["knob", "requested", "in force", "default"]]
    for name in names:
        value, default = shown.configuration.get(name, UNKNOWN), shown.default.get(name, UNKNOWN)
        is_changed = UNKNOWN not in (value, default) and value != default
        requested = knob_rows[name]["requested"] if name in knob_rows else value_text(value)
        effective = (knob_rows[name]["effective"] if name in knob_rows else None) or "not read"
        table.append([f"{'*' if is_changed else ' '} {name}", requested, effective, value_text(default)])
    return f"{align(table)}\n(* differs from the default configuration)"


def _outcome(shown: ShownRun) -> str:
    run = shown.record["run"]
    lines = [f"status {run['status']}" + (f": {reason}" if (reason := run.get("reason")) else "")]
    if run.get("throughput_ops") is not None:
        lines.append(f"{format_rate(run['throughput_ops'])} over {format_seconds(run['window_s'])}, {_latency(run)}")
        lines.append(f"{plural(run['operations'], 'operation')}, {format_count(run['failed_operations'])} failed")
    if tail := run.get("log_tail"):
        lines += ["last lines of the log:", *(f"  {line}" for line in tail.splitlines())]
    return "\n".join(lines)


def _latency(run: RunRow) -> str:
    parts = {"p50": run.get("latency_p50_us"), "p95": run.get("latency_p95_us"), "p99": run.get("latency_p99_us")}
    return "latency " + ", ".join(f"{name} {format_micros(value)}" for name, value in parts.items())


def _throughput(shown: ShownRun) -> str:
    counts = [row["ops"] for row in shown.record.get("intervals", [])]
    if not counts:
        return ""
    return (
        f"operations per interval  {draw_sparkline(counts)}  {format_count(min(counts))} to {format_count(max(counts))}"
    )


def _requests(shown: ShownRun) -> str:
    rows = [row for row in shown.record.get("io_profile", []) if row.get("requests")]
    if not rows:
        return ""
    unit = shown.record["run"].get("aligned_to_bytes")
    aligned = "aligned" if unit is None else f"aligned to {format_size(unit)}"
    table = [["requests", "count", "MiB", aligned, "sequential"]]
    for row in rows:
        size = row.get("bytes")
        shares = [format_share(row.get("aligned_share")), format_share(row.get("sequential_share"))]
        table.append(
            [
                row["op"],
                format_count(row["requests"]),
                format_decimals(None if size is None else size / 2**20, 1),
                *shares,
            ]
        )
    return f"{align(table)}\n(monitor {shown.record['run']['monitor']})"


def _waits(shown: ShownRun) -> str:
    """Return what an operation waited for, and where the time of all threads went; empty where nobody watched."""
    rows, chains = shown.record.get("waits", []), shown.record.get("wait_chains", [])
    run = shown.record["run"]
    operations = (run.get("throughput_ops") or 0) * (run.get("waits_s") or 0)
    parts = sum_parts(rows, chains, operations=operations) if operations else []
    latency_us = run.get("latency_mean_us")
    budget = [f"sessions spend on an operation: {describe_budget(parts, latency_us)}"] if parts else []
    return "\n".join([*budget, *([format_classes(rows, chains)] if rows else [])])


def _neighbours(shown: ShownRun) -> str:
    if not shown.neighbours:
        if shown.record["run"]["phase"] == "explain":
            return "What was measured again is planned by no block; the report has its comparisons."
        return "The runs of its block can be seen when the block is whole."
    return align([["  runs of its block", "run", "ops/s", "status"], *_lines(shown)])


def _lines(shown: ShownRun) -> Iterator[list[str]]:
    own = shown.record["run"]["run_id"]
    for row in shown.neighbours:
        mark = ">" if row["run_id"] == own else " "
        kind = "default" if row["is_sentinel"] else row["config_id"]
        speed = format_decimals(row["throughput_ops"], 1) if row["status"] == "ok" else UNKNOWN
        yield [f"{mark} {row['position']:3} {kind}", row["run_id"], speed, row["status"]]
