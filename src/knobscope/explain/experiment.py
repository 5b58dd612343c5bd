"""Pairs of runs on a device and on its what-if devices, through the same measured runs as all others."""

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from knobscope.devices import close_device
from knobscope.explain.questions import Question
from knobscope.measure import BlockProgress, Measurer, open_measurer
from knobscope.plan.blocks import config_id_of, load_id_of
from knobscope.specs import Case, Device, StudySpecs
from knobscope.tables import PlanRow, WhatIfRunRow

__all__ = ["ITSELF", "Bench", "measure_pairs"]

#: Name of the device itself beside those of properties.
ITSELF = "none"


@dataclass(frozen=True)
class Bench:
    """What all runs of the stage share; `profiles` are those of the study's devices, by name."""

    specs: StudySpecs
    root: Path
    store: Path
    profiles: Mapping[str, Path]
    repeats: int


def measure_pairs(
    bench: Bench, device: Device, property_name: str, questions: Sequence[Question]
) -> Iterator[tuple[Question, list[WhatIfRunRow]]]:
    """Yield each question, all of one case, with its pairs of runs on a device.

    A what-if device is brought up before and taken down after; its runs count as those of the device that it is like,
    in whose profile the preferred write size stands. Raises UserError when the device cannot be brought up or the
    reference configuration does not run on it.
    """
    original = questions[0].case.device
    specs = replace(bench.specs, devices={**bench.specs.devices, device.name: device})
    case = replace(questions[0].case, device=device.name)
    planned = 2 * bench.repeats * len({(one.knob, one.value) for one in questions})
    progress = BlockProgress(f"explain {case}", planned, questions[0].reference)
    with _taken_down(device, bench.root, is_own=device.name != original):
        arguments = (specs, case, bench.root, bench.profiles[original], bench.store, progress)
        with open_measurer(*arguments) as measurer:
            measured: dict[tuple[str, str], list[WhatIfRunRow]] = {}  # an effect and its gap to another tier share runs
            for question in questions:
                key = question.knob, question.value
                if key not in measured:
                    measured[key] = list(_measure(measurer, specs, case, question, property_name, bench.repeats))
                yield question, [{**row, "other_device": question.other} for row in measured[key]]
    progress.finish()


@contextmanager
def _taken_down(device: Device, root: Path, *, is_own: bool) -> Iterator[None]:
    try:
        yield
    finally:
        if is_own:
            close_device(device, root)


def _measure(
    measurer: Measurer, specs: StudySpecs, case: Case, question: Question, property_name: str, repeats: int
) -> Iterator[WhatIfRunRow]:
    """Yield the runs of a question: pairs, every other one with the reference value first."""
    position = 0
    for pair in range(repeats):
        for is_reference in (True, False) if pair % 2 == 0 else (False, True):
            record = measurer.measure(_plan_row(specs, case, question, pair, position, is_reference=is_reference))
            run, position = record["run"], position + 1
            yield {
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
            }


def _plan_row(
    specs: StudySpecs, case: Case, question: Question, pair: int, position: int, *, is_reference: bool
) -> PlanRow:
    configuration: dict[str, Any] = question.reference if is_reference else question.configuration
    block = hashlib.sha256(f"{question.knob}={question.value}".encode()).hexdigest()[:8]
    return {
        "block_id": f"{case}/explain-0-{block}",
        "phase": "explain",
        "round": 0,
        "position": position,
        "config_id": config_id_of(case.dbms, configuration),
        "is_sentinel": is_reference,
        "repeat": pair,
        "load_id": load_id_of(specs.dbms[case.dbms], configuration),
        "configuration": json.dumps(configuration, sort_keys=True),
        "is_chosen": False,
    }
