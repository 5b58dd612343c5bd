"""A diagnosis as text: the conclusion first, then what it rests on."""

from collections.abc import Sequence

from knobscope.commands.attach.diagnosis import Diagnosis
from knobscope.commands.attach.files import BusyFile
from knobscope.text.formats import (
    format_decimals,
    format_share,
    format_size,
    loosen_units,
)
from knobscope.text.layout import align

__all__ = ["format_diagnosis", "format_files", "format_requests"]

_MOST_FILES = 10


def format_diagnosis(diagnosis: Diagnosis) -> str:
    """Return the whole text, in blocks."""
    conclusion = diagnosis.conclusion
    first = [conclusion.headline, *([diagnosis.suggestion] if diagnosis.suggestion else [])]
    blocks = [
        "\n".join(first),
        diagnosis.describe_server(),
        "\n".join([*conclusion.sentences, *diagnosis.remarks]),
        format_requests(diagnosis),
        format_files(diagnosis.files, diagnosis.facts.seconds),
        _format_budget(diagnosis),
        _format_advice(diagnosis),
        "\n".join(f"{finding['rule']}: {finding['verdict']}: {finding['sentence']}" for finding in diagnosis.findings),
        "\n".join(diagnosis.limits),
    ]
    return loosen_units("\n\n".join(block for block in blocks if block)) + "\n"


def format_requests(diagnosis: Diagnosis) -> str:
    """Return requests by operation: the server's per second, sizes, latency, what is in flight."""
    table = [["", "per s", "mean size", "MiB/s", "mean µs", "p99 µs <=", "in flight"]]
    for op, one in diagnosis.facts.operations.items():
        if not one.device_per_s:
            continue
        size = [format_size(one.mean_bytes), format_decimals(one.per_s * one.mean_bytes / 2**20, 2)]
        times = [format_decimals(one.mean_us, 0), format_decimals(one.p99_us, 0)]
        in_flight = format_decimals(one.in_flight if one.mean_us is not None else None, 2)
        table.append([op, format_decimals(one.per_s, 1), *(size if op != "flush" else ["", ""]), *times, in_flight])
    return align(table) if len(table) > 1 else ""


def format_files(files: Sequence[BusyFile], seconds: float) -> str:
    """Return the busiest files with the DBMS's names for them."""
    table = [["file", "is", "", "per s", "MiB/s", "mean size"]]
    for file in files[:_MOST_FILES]:
        rates = [format_decimals(file.requests / seconds, 1), format_decimals(file.bytes / seconds / 2**20, 2)]
        table.append([file.name, file.purpose, file.op, *rates, format_size(file.bytes / file.requests)])
    return align(table) if len(table) > 1 else ""


def _format_budget(diagnosis: Diagnosis) -> str:
    if diagnosis.budget is None:
        return ""
    table = [["time of the sessions", "share", "of it through another thread"]]
    for line in diagnosis.budget.lines:
        table.append([line.reason, format_share(line.share), format_share(line.through_share)])
    return align(table)


def _format_advice(diagnosis: Diagnosis) -> str:
    lines = [f"{one.words}\n    {one.description} {one.source}" for one in diagnosis.advice]
    return "\n".join(["knobs that steer what is at fault:", *(f"  {line}" for line in lines)]) if lines else ""
