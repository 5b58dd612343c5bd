"""Puts the questions of a case to its device and what-if devices, as far as each is still open."""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

from knobscope.errors import UserError
from knobscope.explain.causes import Answer
from knobscope.explain.experiment import ITSELF, Bench, measure_pairs
from knobscope.explain.properties import EVERYTHING
from knobscope.explain.questions import Question
from knobscope.specs import Device
from knobscope.statistics.looks import LOOKS
from knobscope.tables import WhatIfRunRow

__all__ = ["answer_questions"]


def answer_questions(
    bench: Bench, device: Device, what_ifs: Mapping[str, Device], questions: Sequence[Question]
) -> tuple[list[Answer], list[WhatIfRunRow]]:
    """Measure all questions of a case: on the device, without all costs, then property by property what is still open.

    On the device itself rounds go on, up to three times as many, while an effect neither shows again nor is surely less
    than half of what the sweep saw. One that does not show again, or that remains where the device costs nothing, is
    not followed further. Raises UserError when a modelled device cannot be brought up.
    """
    answers = [Answer(question) for question in questions]
    runs = _repeat_on_itself(bench, device, answers)
    for name in sorted(what_ifs, key=lambda name: name != EVERYTHING):
        still_open = {answer.question: answer for answer in answers if answer.is_open}
        if not still_open:
            break
        try:
            for question, measured in measure_pairs(bench, what_ifs[name], name, list(still_open)):
                still_open[question].add(name, measured)
                runs += measured
        except UserError as error:
            print(f"knobscope: explain: {what_ifs[name].name} is left out: {error}", file=sys.stderr)
    return answers, runs


def _repeat_on_itself(bench: Bench, device: Device, answers: Sequence[Answer]) -> list[WhatIfRunRow]:
    """Return the runs on the device itself.

    A device that cannot be used leaves its questions unanswered, except those that its what-if devices need.
    """
    runs: dict[Question, list[WhatIfRunRow]] = defaultdict(list)
    for look in range(LOOKS):
        asked = {answer.question: answer for answer in answers if look == 0 or not answer.is_settled}
        if not asked:
            break
        try:
            for question, measured in measure_pairs(bench, device, ITSELF, list(asked), look):
                runs[question] += measured
                asked[question].add(ITSELF, runs[question])
        except UserError as error:
            if any(question.followed for question in asked):
                raise
            for answer in asked.values():
                answer.failures[ITSELF] = str(error)
            break
    return [run for of_question in runs.values() for run in of_question]
