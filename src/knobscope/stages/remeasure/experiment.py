"""Pairs of runs on a device and on its what-if devices, through the same measured runs as all others.

A round is a run of the reference configuration and one of each of up to four values, and every other round runs
backwards: what drifts steadily adds to the pairs of one round what it takes from those of the next.
"""

import hashlib
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from knobscope.devices import close_device
from knobscope.errors import UserError
from knobscope.specs import Case, Device, StudySpecs, Value
from knobscope.specs.models.transport import read_transport
from knobscope.stages.measure import BlockProgress, Measurer, open_measurer
from knobscope.stages.plan.blocks import plan_row
from knobscope.stages.remeasure.questions import TOGETHER, Question
from knobscope.tables import PlanRow, RunRecord, WhatIfRunRow

#: Name of the device itself in addition to those of properties.
ITSELF = "none"
#: Knob and value of a question; without a name it is the default configuration that is asked about.
Asked = tuple[str | None, str | None]
#: What a device is asked for.
OPERATIONS = ("read", "write", "flush")
#: Number of the device in addition to those of its hardware queues.
_WHOLE_DEVICE = -1


@dataclass(frozen=True)
class Bench:
    """What all runs of the stage share; `profiles` are those of the study's devices, by name.

    Runs in the store that were made with the same `round` are taken as they are; another number asks for new ones.
    """

    specs: StudySpecs
    root: Path
    store: Path
    profiles: Mapping[str, Path]
    repeats: int
    round: int = 1


def measure_pairs(
    bench: Bench,
    device: Device,
    property_name: str,
    questions: Sequence[Question],
    look: int = 0,
    *,
    keep: bool = False,
) -> Iterator[tuple[Question, list[WhatIfRunRow]]]:
    """Yield each question, all of one case, with its pairs of runs on a device; earlier `look`s had as many.

    A what-if device is brought up before and, unless it is to be kept for the next look, taken down after; its runs
    count as those of the device that it is like, in whose profile the preferred write size stands. Raises UserError
    when the device cannot be brought up or the reference configuration does not run on it.
    """
    original = questions[0].case.device
    specs = replace(bench.specs, devices={**bench.specs.devices, device.name: device})
    case = questions[0].case._replace(device=device.name)
    groups = _share_references(questions)
    pairs = range(look * bench.repeats, (look + 1) * bench.repeats)
    progress = BlockProgress(
        f"remeasure {case}",
        bench.repeats * sum(1 + len(_list_changed(group)) for group in groups),
        questions[0].reference,
    )
    measured: dict[Asked, list[WhatIfRunRow]] = {}  # an effect and its gap to another tier share runs
    with _taken_down(device, bench.root, is_own=device.name != original and not keep):
        arguments = (specs, case, bench.root, bench.profiles[original], bench.store, progress)
        with open_measurer(*arguments) as measurer:
            for group in groups:
                measured |= _measure(measurer, bench, case, group, property_name, pairs)
    for question in questions:
        rows = measured[question.knob, question.value]
        yield question, [{**row, "other_device": question.other_device, "is_level": question.is_level} for row in rows]
    progress.finish()


def _share_references(questions: Sequence[Question]) -> list[list[Question]]:
    """Return groups of different values with the same reference configuration, of some each.

    A question about the reference configuration itself needs no runs but those that a group of others makes anyway, and
    questions about one configuration share its runs.
    """
    by_reference: dict[str, dict[Asked, Question]] = {}
    for question in questions:
        by_reference.setdefault(json.dumps(question.reference, sort_keys=True), {}).setdefault(
            (question.knob, question.value), question
        )
    groups: list[list[Question]] = []
    for of_reference in by_reference.values():
        changed = _list_changed(list(of_reference.values()))
        parts = [changed[begin : begin + TOGETHER] for begin in range(0, len(changed), TOGETHER)] or [[]]
        shared = [[question for question in of_reference.values() if question.configuration in part] for part in parts]
        shared[0] += [question for question in of_reference.values() if question.is_default]
        groups += shared
    return groups


def _list_changed(questions: Sequence[Question]) -> list[dict[str, Value]]:
    """Return the configurations that are asked about, each once, without the reference."""
    changed: list[dict[str, Value]] = []
    for question in questions:
        if not question.is_default and question.configuration not in changed:
            changed.append(question.configuration)
    return changed


@contextmanager
def _taken_down(device: Device, root: Path, *, is_own: bool) -> Iterator[None]:
    """Take the device down after the body; if something else holds it, what was measured on it counts all the same."""
    try:
        yield
    finally:
        if is_own:
            try:
                close_device(device, root)
            except UserError as error:
                print(f"knobscope: remeasure: {device.name} stays up: {error}", file=sys.stderr)


def _measure(
    measurer: Measurer, bench: Bench, case: Case, group: Sequence[Question], property_name: str, pairs: range
) -> dict[Asked, list[WhatIfRunRow]]:
    """Return the runs of values that share a reference: in rounds, every other one in the opposite order."""
    rows: dict[Asked, list[WhatIfRunRow]] = {(question.knob, question.value): [] for question in group}
    order = [group[0].reference, *_list_changed(group)]
    for pair in pairs:
        in_turn = order if pair % 2 == 0 else order[::-1]
        planned = [
            _plan_row(bench, case, group, configuration, pair, position)
            for position, configuration in enumerate(in_turn, pair * len(order))
        ]
        for configuration, record in zip(in_turn, measurer.measure_together(planned, prepares=True), strict=True):
            is_reference = configuration == group[0].reference
            run = record["run"]
            flush_way_us, busy_us = _flush_way_us(record), _busy_us(record)
            requests = {op: _request_times(record, op) for op in OPERATIONS}
            for question in (
                group if is_reference else [question for question in group if question.configuration == configuration]
            ):
                rows[question.knob, question.value].append(
                    {
                        "dbms": question.case.dbms,
                        "device": question.case.device,
                        "workload": question.case.workload,
                        "knob": question.knob,
                        "value": question.value,
                        "property": property_name,
                        "run_id": run["run_id"],
                        "pair": pair,
                        "is_reference": is_reference,
                        "status": run["status"],
                        "reason": run.get("reason"),
                        "throughput_ops": run.get("throughput_ops"),
                        "flush_way_us": flush_way_us,
                        "busy_us": busy_us,
                        "reads_per_op": requests["read"][0],
                        "writes_per_op": requests["write"][0],
                        "flushes_per_op": requests["flush"][0],
                        "read_us": requests["read"][1],
                        "write_us": requests["write"][1],
                        "flush_us": requests["flush"][1],
                        "written_per_flush": _written_per_flush(record),
                    }
                )
    return rows


def _flush_way_us(record: RunRecord) -> float | None:
    """Return what the way to a modelled device cost the flushes of a run, microseconds per operation of the DBMS.

    A model answers early by as much, but not before it is asked: a flush that takes no time there still takes the way.
    None where nothing is known of requests, operations or the way.
    """
    transport, operations, requests = read_transport(), record["run"].get("operations"), record.get("io_latency")
    if transport is None or not operations or not requests:
        return None
    flushes = sum(row["requests"] for row in requests if row["op"] == "flush")
    return transport.flush_us * flushes / operations


def _busy_us(record: RunRecord) -> float | None:
    """Return how long the device had any request, microseconds per operation; None where depth was not watched."""
    depths = [row for row in record.get("queue_depth", []) if row["queue"] == _WHOLE_DEVICE]
    operations = record["run"].get("operations")
    if not depths or not operations:
        return None
    return sum(row["time_ns"] for row in depths if row["depth"] > 0) / 1e3 / operations


def _request_times(record: RunRecord, op: str) -> tuple[float | None, float | None]:
    """Return requests per operation of the DBMS, and the mean microseconds of one; None where nobody watched."""
    operations = record["run"].get("operations")
    if record["run"].get("monitor") != "bpf" or not operations:
        return None, None
    buckets = [row for row in record["io_latency"] if row["op"] == op]
    requests = sum(row["requests"] for row in buckets)
    total_us = sum(row["requests"] * (row["low_us"] + row["high_us"]) / 2 for row in buckets)
    return requests / operations, total_us / max(requests, 1)


def _written_per_flush(record: RunRecord) -> float | None:
    """Return the bytes written for each flush; None where nobody watched, or nothing was flushed."""
    flushes = sum(
        row["requests"] for row in record.get("io_latency", []) if row["op"] == "flush"
    )  # a failed run has none
    written = sum(row["bytes"] or 0 for row in record.get("io_profile", []) if row["op"] == "write")
    return written / flushes if flushes else None


def _plan_row(
    bench: Bench, case: Case, group: Sequence[Question], configuration: Mapping[str, Value], pair: int, position: int
) -> PlanRow:
    values = ";".join(f"{question.knob}={question.value}" for question in group if not question.is_default)
    block = hashlib.sha256(values.encode()).hexdigest()[:8]
    block_id, phase = f"{case}/explain-{bench.round}-{block}", "explain"  # as the stage was called in the first stores
    is_reference = configuration == group[0].reference
    dbms = bench.specs.dbms[case.dbms]
    row = plan_row(dbms, block_id, phase, configuration, pair, position, is_sentinel=is_reference)
    return {**row, "round": bench.round}
