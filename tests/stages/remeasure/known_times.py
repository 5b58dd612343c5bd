"""Answers of what-if devices on which a value takes a known time per operation."""

import math
from collections.abc import Mapping

import numpy as np

from knobscope.specs import Case, RuleCause, read_shipped_rule
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import NOTHING, Amount
from knobscope.tables import WhatIfRunRow

CASE = Case("toy", "ssd", "w")
#: Microseconds per operation of the reference setting, whatever the device.
REFERENCE_US = 200.0


def ask(other: str | None = None, rest: Amount = NOTHING) -> Question:
    return Question(CASE, "sync", "full", {"sync": "full"}, {"sync": "off"}, (0,), other, rest)


def pairs(name: str, value_us: float, noise: float = 0.01, count: int = 4) -> list[WhatIfRunRow]:
    """Return runs in which the value takes `value_us` per operation."""
    rng = np.random.default_rng(sum(map(ord, name)))
    rows: list[WhatIfRunRow] = []
    for pair in range(count):
        for is_reference, micros in ((True, REFERENCE_US), (False, value_us)):
            throughput = 1e6 / micros * math.exp(rng.normal(0, noise))
            row: WhatIfRunRow = {"pair": pair, "is_reference": is_reference, "status": "ok", "reason": None}
            rows.append({**row, "property": name, "throughput_ops": throughput})
    return rows


def answer(times: Mapping[str, float], question: Question | None = None, noise: float = 0.01) -> Answer:
    found = Answer(question or ask())
    for name, micros in times.items():
        found.add(name, pairs(name, micros, noise))
    return found


def cause(rule: str) -> RuleCause:
    found = read_shipped_rule(rule).about.cause
    assert found is not None
    return found


#: What makes the difference of 2,000 us: times of the slower value on each device.
FLUSH = {ITSELF: 2200, "everything": 260, "flush": 500, "write_unit": 1900, "bandwidth": 2200, "channels": 2190}
UNIT = {ITSELF: 2200, "everything": 260, "flush": 1900, "write_unit": 520, "bandwidth": 2190, "channels": 2210}
READS = {ITSELF: 2200, "everything": 260, "latency": 1900, "bandwidth": 500}
CPU = {ITSELF: 2200, "everything": 2150}
BOTH = {ITSELF: 2200, "everything": 260, "flush": 1500, "write_unit": 1400, "bandwidth": 2190}


def as_reference(runs: list[WhatIfRunRow]) -> list[WhatIfRunRow]:
    return [{**run, "is_reference": True} for run in runs if not run["is_reference"]]
