"""What is asked of what-if devices, and what becomes of runs there that fail."""

from collections.abc import Iterator, Sequence
from typing import Any

import pytest
from known_times import CASE, ask, pairs
from shipped_specs import shipped_study

from knobscope.errors import UserError
from knobscope.stages.remeasure import answering
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.properties import what_if_devices
from knobscope.stages.remeasure.questions import Question
from knobscope.tables import WhatIfRunRow

Pairs = Iterator[tuple[Question, list[WhatIfRunRow]]]


@pytest.mark.parametrize(
    ("second", "conclusion", "said"),
    [
        ("ok", "cause", "this property is the cause"),
        ("failed", "undecided", "With a flush that takes no time there is no result: the machine is slow."),
        ("no device", "undecided", "With a flush that takes no time there is no result: the machine is slow."),
    ],
)
def test_pairs_that_fail_on_a_what_if_device_are_made_once_more(
    monkeypatch: pytest.MonkeyPatch, second: str, conclusion: str, said: str
) -> None:
    def measure(_bench: Any, _device: Any, name: str, questions: Sequence[Question], look: int = 0) -> Pairs:
        if look == 1 and second == "no device":
            raise UserError("it cannot be brought up")
        runs = pairs(name, 2200 if name == ITSELF else 300)
        failed = [WhatIfRunRow(**{**row, "status": "invalid", "reason": "the machine is slow"}) for row in runs]
        is_ok = name == ITSELF or (look == 1 and second == "ok")
        yield from ((question, runs if is_ok else failed) for question in questions)

    monkeypatch.setattr(answering, "measure_pairs", measure)
    device = shipped_study("quickstart-drives").devices["sata-ssd"]
    flush = {"flush": what_if_devices(device)["flush"]}
    bench: Any = None
    (answer,), runs = answering.answer_questions(bench, device, flush, [ask()])
    assert answer.question.case == CASE
    assert answer.conclusion == conclusion
    assert said in answer.describe()
    looks = {"ok": 2, "failed": 2, "no device": 1}[second]
    assert sum(row["property"] == "flush" for row in runs) == looks * len(pairs("flush", 300))
