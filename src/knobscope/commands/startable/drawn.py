"""Tries the configurations that a study will draw, before any of them is measured, and explains those that fail.

A configuration of a study of all knobs sets a hundred and more at once, so that one value which the server refuses
among them makes nearly all configurations fail, and hides what the others do.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, replace

from knobscope.commands.startable.bisecting import Bisection, Culprit, Outcome, TrialsSpentError
from knobscope.errors import UserError
from knobscope.specs import (
    Case,
    Dbms,
    Knob,
    RefusedSetting,
    StudySpecs,
    Value,
    is_factor,
    refuse_settings,
)
from knobscope.stages.plan import RESPONSIVE, case_space, plan_screening, plan_sweep, sampling_method

Configuration = dict[str, Value]


@dataclass
class Tally:
    """What came of trying the configurations of a study."""

    trials: int = 0
    drawn: int = 0  # configurations that the study draws, with all that was found out
    running: int = 0  # how many of them were tried and ran
    tried: int = 0  # configurations that were tried, each counted once, as it was drawn with what was known by then
    failed: int = 0  # how many of these failed, and were bisected
    is_complete: bool = True  # False where the trials were used up


def try_study(
    specs: StudySpecs,
    name: str,
    attempt: Callable[[Configuration], Outcome],
    budget: int,
    keep: Callable[[RefusedSetting], None],
) -> Tally:
    """Try what a study draws of a DBMS with at most `budget` trials; `keep` gets what is found, one by one.

    UserError: the default configuration of the study does not run, so that nothing can be said of others.
    """
    case = next(case for case in specs.cases if case.dbms == name)
    default = _handed_over(specs.dbms[name], dict(case_space(specs, case).default))
    bisection = Bisection(default, attempt, lambda knob, text: read_value(specs.dbms[name].knobs[knob], text), budget)
    tally = Tally()
    try:
        if (problem := attempt(default)) and not problem.is_well:
            reason = problem.words or ", ".join(f"{knob} reads back {value}" for knob, value in problem.changed.items())
            raise UserError(f"{name} does not run with the default configuration of {specs.study.name}: {reason}")
        _try_all(specs, case, bisection, keep, tally)
    except TrialsSpentError:
        tally.is_complete = False
    tally.trials = bisection.trials
    return tally


def _try_all(
    specs: StudySpecs,
    case: Case,
    bisection: Bisection,
    keep: Callable[[RefusedSetting], None],
    tally: Tally,
) -> None:
    """Try configurations until all that are drawn run; what is found changes what is drawn, so they are drawn anew.

    A change of levels moves that knob in many configurations. One that ran before is tried again only when all others
    did, or when it has a value that no configuration which ran has had.
    """
    dbms, ran, tried = specs.dbms[case.dbms], set[int](), set[frozenset[tuple[str, Value]]]()
    usual, blamed = specs.study.baseline.get(case.dbms, {}), set[str]()
    drawn = _draw(specs, case, blamed)
    while True:
        tally.drawn, tally.running = len(drawn), sum(map(bisection.runs, drawn))
        waiting = [index for index, configuration in enumerate(drawn) if frozenset(configuration.items()) not in tried]
        urgent = [index for index in waiting if index not in ran or not bisection.is_innocent(drawn[index])]
        if not waiting:
            return
        index = (urgent or waiting)[0]
        tried.add(frozenset(drawn[index].items()))
        settings = []
        for culprit in bisection.examine(drawn[index]):
            settings.append(_as_setting(dbms, culprit, usual))
            keep(settings[-1])
        tally.tried += index not in ran
        tally.failed += index not in ran and not bisection.runs(drawn[index])
        ran.add(index)
        if settings:
            blamed |= {knob for setting in settings if len(setting.values) == 1 for knob in setting.values}
            dbms = refuse_settings(dbms, settings, usual)
            drawn = _draw(replace(specs, dbms={**specs.dbms, case.dbms: dbms}), case, blamed)


def _draw(specs: StudySpecs, case: Case, blamed: set[str]) -> list[Configuration]:
    """Return what screening draws in all rounds, then what a sweep would measure of the knobs of which values fail.

    A sampling method that goes by what was measured tells its first round only; of `narrowing` all are known, as far as
    it finds nothing to leave out.
    """
    if sampling_method(specs, case) == "narrowing":
        sampling = specs.study.sampling.model_copy(update={"method": "lhs"})
        specs = replace(specs, study=specs.study.model_copy(update={"sampling": sampling}))
    rounds = 1 if sampling_method(specs, case) in RESPONSIVE else specs.study.sampling.max_rounds
    rows = [row for round_ in range(rounds) for row in plan_screening(specs, case, round_)]
    rows += plan_sweep(specs, case, sorted(blamed)) if blamed else []
    wanted = [row["configuration"] for row in rows if not row["is_sentinel"]]
    return [
        _handed_over(specs.dbms[case.dbms], configuration) for configuration in map(json.loads, dict.fromkeys(wanted))
    ]


def _handed_over(dbms: Dbms, configuration: Configuration) -> Configuration:
    """Return what of a configuration is said to the server: no part of layout, load or kernel."""
    return {name: value for name, value in configuration.items() if not _is_beside(dbms, name)}


def _is_beside(dbms: Dbms, knob: str) -> bool:
    return dbms.part_of(knob) is not None or is_factor(knob)


def _as_setting(dbms: Dbms, culprit: Culprit, usual: dict[str, Value]) -> RefusedSetting:
    becomes = None
    if culprit.in_force is not None:
        (knob,) = culprit.values
        becomes = read_value(dbms.knobs[knob], culprit.in_force)
    return RefusedSetting(values=dict(culprit.values), words=culprit.words, becomes=becomes, beside=usual)


def read_value(knob: Knob, text: str) -> Value | None:
    """Return the value of a knob that a DBMS answers as this text, None where it is none that the knob can have.

    A number may lie outside `range`, which a study may have cut: the DBMS has said that it is in force.
    """
    if knob.range is None:
        return next((value for value in knob.values or [] if str(value) == text), None)
    bare = text.lower().removesuffix((knob.unit or "").lower()).strip()
    try:
        return knob.canonical(int(bare) if knob.type == "integer" else float(bare))
    except ValueError:
        return None
