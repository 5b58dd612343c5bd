"""Puts the questions of a case to its device and what-if devices, or slower ones, as far as each is still open."""

import sys
from collections import defaultdict
from collections.abc import Mapping, Sequence

from knobscope.devices import close_device, count_scratch_bytes, open_locked
from knobscope.errors import UserError
from knobscope.specs import Device
from knobscope.specs.models.quantity import Duration
from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.delays import DELAYED, NO_DELAY, DelayedAnswer
from knobscope.stages.remeasure.experiment import ITSELF, Bench, measure_pairs
from knobscope.stages.remeasure.properties import EVERYTHING, delayed_device
from knobscope.stages.remeasure.questions import Question
from knobscope.statistics.looks import LOOKS
from knobscope.tables import WhatIfRunRow

#: A delay is as long as the requests themselves, so that it shows and changes no more than it has to, but no shorter.
_SHORTEST_US = 100.0
#: How often pairs of runs on a what-if device are made where too few of them give a result.
_ATTEMPTS = 2
#: Room for data that are loaded anew, a copy of them and what runs add to it, over what lies on the device already.
_ROOM, _LEAST_ROOM = 3, 512 << 20


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
        still_open = {answer.question: answer for answer in answers if answer.is_open and answer.question.asks(name)}
        if not still_open:
            continue
        try:
            _ask(bench, what_ifs[name], name, still_open, runs)
        except UserError as error:
            print(f"knobscope: remeasure: {what_ifs[name].name} is left out: {error}", file=sys.stderr)
            for answer in still_open.values():
                if name not in answer.amounts:
                    answer.failures.setdefault(name, str(error))
    return answers, runs


def _ask(bench: Bench, device: Device, name: str, answers: Mapping[Question, Answer], runs: list[WhatIfRunRow]) -> None:
    """Let the answers take in runs on a what-if device, and add these to what was found, also where it ends early.

    Where too many of them fail for a result, as many are made once more.
    """
    of_question: dict[Question, list[WhatIfRunRow]] = defaultdict(list)
    for look in range(_ATTEMPTS):
        asked = [question for question, answer in answers.items() if look == 0 or name in answer.failures]
        for question, measured in measure_pairs(bench, device, name, asked, look) if asked else ():
            runs += measured
            of_question[question] += measured
            answers[question].add(name, of_question[question], device.change)


def answer_with_delays(
    bench: Bench, device: Device, questions: Sequence[Question]
) -> tuple[list[DelayedAnswer], list[WhatIfRunRow]]:
    """Measure all questions of a case on a device without a model: there, and behind a program that delays requests.

    Behind it rounds without a delay run before those with one and after them, so that a steady drift of the machine
    does not count as waiting. What is not asked for on the device (reads of data that lie in memory) is not delayed.
    """
    answers = [DelayedAnswer(question) for question in questions]
    runs = _repeat_on_itself(bench, device, answers)
    still_open = {answer.question: answer for answer in answers if answer.is_open}
    if still_open:
        try:
            _delay(bench, device, still_open, runs)
        except UserError as error:
            print(f"knobscope: remeasure: {device.name} cannot be made slower: {error}", file=sys.stderr)
    return answers, runs


def _delay(bench: Bench, device: Device, answers: Mapping[Question, DelayedAnswer], runs: list[WhatIfRunRow]) -> None:
    """Let the answers take in runs behind the program, and add these to what was found, also where it ends early."""
    with open_locked([device], bench.root, bench.specs.study.name) as (opened,):
        room = _LEAST_ROOM + _ROOM * count_scratch_bytes(opened)
        base = delayed_device(device, NO_DELAY, {}, opened.filesystem, room)
    try:
        _measure_base(bench, base, answers, runs, look=0)
        if not all(answer.is_watched for answer in answers.values()):
            raise UserError("how long requests take is not known, since BPF did not watch them")
        for name, op in DELAYED.items():
            still_open = {question: answer for question, answer in answers.items() if answer.is_open}
            longest_us = max((answer.longest_us(op) for answer in still_open.values()), default=0.0)
            if longest_us == 0:
                for answer in still_open.values():
                    answer.note_unused(name)
                continue
            change = {op: Duration(f"{max(_SHORTEST_US, longest_us):.0f}us")}
            slower = delayed_device(device, name, change, opened.filesystem, room)
            for question, measured in measure_pairs(bench, slower, name, list(still_open)):
                answers[question].add(name, measured, change)
                runs += measured
        still_open = {question: answer for question, answer in answers.items() if answer.is_open}
        if still_open:
            _measure_base(bench, base, still_open, runs, look=1)
    finally:
        close_device(base, bench.root)


def _measure_base(
    bench: Bench, device: Device, answers: Mapping[Question, DelayedAnswer], runs: list[WhatIfRunRow], look: int
) -> None:
    """Measure pairs without a delay, keep the device for another look, and let the answers take in all there are."""
    for question, measured in measure_pairs(bench, device, NO_DELAY, list(answers), look, keep=True):
        runs += measured
        answers[question].add(NO_DELAY, [*answers[question].runs.get(NO_DELAY, []), *measured])


def _repeat_on_itself(bench: Bench, device: Device, answers: Sequence[Answer]) -> list[WhatIfRunRow]:
    """Return the runs on the device itself.

    A device that cannot be used leaves its questions unanswered, except those that its what-if devices need.
    """
    runs: dict[Question, list[WhatIfRunRow]] = defaultdict(list)
    for look in range(LOOKS):
        by_question = {answer.question: answer for answer in answers if look == 0 or not answer.is_settled}
        if not by_question:
            break
        try:
            for question, measured in measure_pairs(bench, device, ITSELF, list(by_question), look):
                runs[question] += measured
                by_question[question].add(ITSELF, runs[question])
        except UserError as error:
            if any(question.followed for question in by_question):
                raise
            for answer in by_question.values():
                answer.failures[ITSELF] = str(error)
            break
    return [run for of_question in runs.values() for run in of_question]
