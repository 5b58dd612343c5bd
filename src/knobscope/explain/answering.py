"""Puts the questions of a case to its device and what-if devices, as far as each is still open."""

import sys
from collections.abc import Iterator, Mapping, Sequence

from knobscope.errors import UserError
from knobscope.explain.causes import Answer
from knobscope.explain.experiment import ITSELF, Bench, measure_pairs
from knobscope.explain.properties import EVERYTHING
from knobscope.explain.questions import Question
from knobscope.specs import Device
from knobscope.tables import WhatIfRunRow

__all__ = ["answer_questions"]


def answer_questions(
    bench: Bench, device: Device, what_ifs: Mapping[str, Device], questions: Sequence[Question]
) -> tuple[list[Answer], list[WhatIfRunRow]]:
    """Measure all questions of a case: on the device, without all costs, then property by property what is still open.

    An effect that does not show again, or that remains where the device costs nothing, is not followed further.
    """
    answers = {question: Answer(question) for question in questions}
    runs: list[WhatIfRunRow] = []
    for name in (ITSELF, *sorted(what_ifs, key=lambda name: name != EVERYTHING)):
        asked = [one for one in questions if name == ITSELF or answers[one].is_open]
        for question, measured in _try_pairs(bench, what_ifs.get(name, device), name, asked):
            answers[question].add(name, measured)
            runs += measured
    return list(answers.values()), runs


def _try_pairs(
    bench: Bench, device: Device, name: str, questions: Sequence[Question]
) -> Iterator[tuple[Question, list[WhatIfRunRow]]]:
    """Yield what was measured; of a what-if device that cannot be used, say why, and yield nothing."""
    if not questions:
        return
    try:
        yield from measure_pairs(bench, device, name, questions)
    except UserError as error:
        if name == ITSELF:
            raise
        print(f"knobscope: explain: {device.name} is left out: {error}", file=sys.stderr)
