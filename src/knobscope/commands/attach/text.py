"""A diagnosis as text: the conclusion first, then what it rests on."""

from collections.abc import Mapping, Sequence
from typing import Any

from knobscope.commands.attach.busy_files import BusyFile
from knobscope.commands.attach.diagnosis import Diagnosis
from knobscope.text.formats import (
    format_count,
    format_decimals,
    format_micros,
    format_seconds,
    format_share,
    format_size,
    loosen_units,
)
from knobscope.text.text_table import align
from knobscope.watch.text import format_levels

_MOST_FILES = 10

Rows = Sequence[Mapping[str, Any]]


def format_diagnosis(diagnosis: Diagnosis) -> str:
    """Return the whole text, in blocks."""
    conclusion = diagnosis.conclusion
    first = [conclusion.headline, *([diagnosis.suggestion] if diagnosis.suggestion else [])]
    blocks = [
        "\n".join(first),
        diagnosis.describe_server(),
        "\n".join(diagnosis.sentences),
        _format_requests(diagnosis),
        format_levels(diagnosis.profile.get("levels", ())),
        _format_files(diagnosis.files, diagnosis.facts.seconds),
        _format_budget(diagnosis),
        _format_advice(diagnosis),
        "\n".join(diagnosis.limits),
    ]
    return loosen_units("\n\n".join(block for block in blocks if block)) + "\n"


def format_live(diagnosis: Diagnosis) -> str:
    """Return one screen: what is at fault now, rates, depth by queue, the slowest requests, the busiest files."""
    blocks = [
        f"{diagnosis.subject.running.title} on {diagnosis.subject.data.block.name}, the last "
        f"{format_seconds(diagnosis.facts.seconds)} (Ctrl-C ends)\n{diagnosis.conclusion.headline}",
        _format_budget(diagnosis),
        _format_requests(diagnosis),
        _format_queues(diagnosis.profile["queue_depth"]),
        _format_slowest(diagnosis.profile["io_latency"]),
        _format_files(diagnosis.files, diagnosis.facts.seconds),
    ]
    return loosen_units("\n\n".join(block for block in blocks if block)) + "\n"


def _format_queues(rows: Rows) -> str:
    """Return the mean depth of the device, and of its hardware queues where there are several, while they are busy."""
    queues = sorted({row["queue"] for row in rows})
    parts = []
    for queue in queues if len(queues) > 2 else [-1]:
        busy = {row["depth"]: row["time_ns"] for row in rows if row["queue"] == queue and row["depth"]}
        mean = sum(depth * time_ns for depth, time_ns in busy.items()) / (sum(busy.values()) or 1)
        parts.append(f"{'device' if queue < 0 else f'queue {queue}'} {format_decimals(mean, 1)}")
    return f"in flight while busy: {', '.join(parts)}" if rows else ""


def _format_slowest(rows: Rows) -> str:
    """Return the last bucket of each operation's latencies."""
    last = {row["op"]: row for row in rows if row["requests"]}
    parts = [
        f"{op} {format_micros(row['low_us'])} to {format_micros(row['high_us'])} ({format_count(row['requests'])})"
        for op, row in last.items()
    ]
    return f"slowest requests: {', '.join(parts)}" if parts else ""


def _format_requests(diagnosis: Diagnosis) -> str:
    """Return requests by operation: the server's per second, sizes, latency, what is in flight."""
    table = [["", "per s", "mean size", "MiB/s", "mean µs", "p99 µs <=", "in flight"]]
    for op, operation in diagnosis.facts.operations.items():
        if not operation.per_s:
            continue
        size = [format_size(operation.mean_bytes), format_decimals(operation.per_s * operation.mean_bytes / 2**20, 2)]
        times = [format_decimals(operation.mean_us, 0), format_decimals(operation.p99_us, 0)]
        in_flight = format_decimals(operation.in_flight if operation.mean_us is not None else None, 2)
        table.append(
            [op, format_decimals(operation.per_s, 1), *(size if op != "flush" else ["", ""]), *times, in_flight]
        )
    return align(table) if len(table) > 1 else ""


def _format_files(files: Sequence[BusyFile], seconds: float) -> str:
    """Return the busiest files with the DBMS's names for them."""
    table = [["file", "is", "", "per s", "MiB/s", "mean size"]]
    for file in files[:_MOST_FILES]:
        rates = [format_decimals(file.requests / seconds, 1), format_decimals(file.bytes / seconds / 2**20, 2)]
        table.append([file.name, file.purpose, file.op, *rates, format_size(file.bytes / file.requests)])
    return align(table) if len(table) > 1 else ""


def _format_budget(diagnosis: Diagnosis) -> str:
    if diagnosis.budget is None:
        return ""
    whose = "sessions" if diagnosis.budget.sessions else "threads"
    table = [[f"time of the {whose}", "share", "of it through another thread"]]
    for line in diagnosis.budget.lines:
        table.append([line.reason, format_share(line.share), format_share(line.through_share)])
    return align(table)


def _format_advice(diagnosis: Diagnosis) -> str:
    lines = [f"{item.words}\n    {item.description} {item.source}" for item in diagnosis.advice]
    return "\n".join(["knobs that control the bottleneck:", *(f"  {line}" for line in lines)]) if lines else ""
