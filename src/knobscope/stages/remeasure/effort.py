"""How many runs it takes to measure mismatches again: at most, and where a case has one."""

import json
from collections.abc import Iterable

from knobscope.specs import Case, Device, StudySpecs
from knobscope.specs.models.rule import RuleSpec
from knobscope.stages.plan import list_dependents
from knobscope.stages.remeasure.properties import layered_devices, what_if_devices
from knobscope.stages.remeasure.questions import OF_FLUSHES, TOGETHER, is_modelled, list_blamed, what_if_number
from knobscope.statistics.looks import LOOKS

#: How often effects are measured on slower devices: with reads, writes or flushes delayed, and twice with none.
_SLOWER = 5

#: The largest clear effect of a study, and that without a risk to committed data, are the head of its report.
_HEADLINES = 2

#: Configurations of a case in table `fastest` at most.
_FASTEST = 2


def count_remeasuring_runs(specs: StudySpecs) -> int:
    """Return how many runs the stage takes at most, unless some fail on what-if devices and are made once more."""
    remeasure, what_if = specs.study.remeasure, what_if_number(specs)
    if not remeasure.findings:
        return 0
    references = sum(_count_references(specs, case) for case in specs.cases)
    own_runs = _count_round(remeasure.findings + _HEADLINES + _FASTEST * len(specs.cases), references) * LOOKS
    most = remeasure.findings if what_if is None else min(what_if, remeasure.findings)
    rules = [rule.about for rule in specs.rules.values()]
    devices = [_count_devices(rules, device, what_if) for device in specs.devices.values()]
    return remeasure.repeats * (own_runs + _count_round(most, references) * max(devices, default=0))


def expect_remeasuring_runs(specs: StudySpecs, case: Case) -> int:
    """Return how many runs the stage takes of a case that has one mismatch, if the first pairs of runs decide."""
    remeasure, what_if = specs.study.remeasure, what_if_number(specs)
    if not remeasure.findings:
        return 0
    each = [_count_devices([rule.about], specs.devices[case.device], what_if) for rule in specs.rules.values()]
    devices = max(each, default=0) if what_if != 0 else 0
    return remeasure.repeats * (_count_round(1 + _FASTEST, references=1) + _count_round(1, references=1) * devices)


def _count_devices(rules: Iterable[RuleSpec], device: Device, what_if: int | None) -> int:
    """Return to how many other devices the effects on a device are followed at most."""
    if what_if is not None:
        return len(what_if_devices(device)) + len(layered_devices(device)) if is_modelled(device) else _SLOWER
    blamed = frozenset[str]().union(*(list_blamed(about, about.held_by, device) for about in rules))
    return len(blamed) + bool(blamed & OF_FLUSHES)


def _count_round(effects: int, references: int) -> int:
    """Return how many runs a round of effects takes at most, next to so many reference configurations.

    Each reference that is used takes a run, and one more for every further `TOGETHER` effects that share it.
    """
    used = min(effects, references)
    return effects + used + (effects - used) // TOGETHER


def _count_references(specs: StudySpecs, case: Case) -> int:
    """Return how many configurations values of a case are compared with: the default, and changes of it."""
    changes = {
        json.dumps(dependent.change, sort_keys=True) for dependent in list_dependents(specs, case) if dependent.change
    }
    return 1 + len(changes)
