"""Bisection of configurations that fail, on generated systems of which is known what they refuse."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from knobscope.commands.startable.bisecting import Bisection, Culprit, Outcome, TrialsSpentError, minimise
from knobscope.specs import Value

KNOBS = 150
DEFAULT: dict[str, Value] = {f"k{index}": 0 for index in range(KNOBS)}
Configuration = Mapping[str, Value]


@dataclass
class System:
    """A DBMS that refuses some values together, rounds some down, and may be disturbed from outside."""

    refused: list[dict[str, Value]]
    rounded: dict[str, int] = field(default_factory=dict)  # knob -> multiple that it is rounded down to
    tied: dict[str, dict[str, Value]] = field(default_factory=dict)  # knob -> values beside which it reads back -1
    disturbed: frozenset[int] = frozenset()  # trials that fail whatever is asked for
    trials: int = 0

    def __call__(self, configuration: Configuration) -> Outcome:
        self.trials += 1
        if self.trials in self.disturbed:
            return Outcome("the machine was busy")
        for number, one in enumerate(self.refused):
            if one.items() <= configuration.items():
                return Outcome(f"refusal {number}")
        changed = {}
        for knob, multiple in self.rounded.items():
            asked = int(configuration[knob])
            if asked % multiple:
                changed[knob] = str(asked - asked % multiple)
        changed |= {knob: "-1" for knob, values in self.tied.items() if values.items() <= configuration.items()}
        return Outcome(changed=changed)


def bisect(system: System, budget: int = 10_000) -> Bisection:
    return Bisection(DEFAULT, system, lambda _, text: int(text), budget)


def draw(seed: int, count: int) -> list[dict[str, Value]]:
    rng = np.random.default_rng(seed)
    return [
        {knob: int(value) for knob, value in zip(DEFAULT, rng.integers(0, 3, KNOBS), strict=True)} for _ in range(count)
    ]


def values_of(culprits: list[Culprit]) -> set[frozenset[tuple[str, Value]]]:
    return {frozenset(one.values.items()) for one in culprits}


def as_set(values: Configuration) -> frozenset[tuple[str, Value]]:
    return frozenset(values.items())


@pytest.mark.parametrize("seed", range(20))
def test_what_is_left_fails_and_no_part_of_it_does(seed: int) -> None:
    rng = np.random.default_rng(seed)
    guilty = set(rng.choice(100, size=int(rng.integers(1, 5)), replace=False).tolist())
    assert set(minimise(range(100), lambda part: guilty <= set(part))) == guilty


def test_one_deadly_value_of_many_takes_few_trials() -> None:
    """ddmin needs at most 2 log2(n) tests for a single cause; confirming it takes three more."""
    everything: dict[str, Value] = dict.fromkeys(DEFAULT, 1)
    trials = []
    for index in range(KNOBS):
        system = System([{f"k{index}": 1}])
        (culprit,) = bisect(system).examine(everything)
        assert (culprit.values, culprit.words) == ({f"k{index}": 1}, "refusal 0")
        trials.append(system.trials)
    assert max(trials) <= 2 * math.ceil(math.log2(KNOBS)) + 5


@pytest.mark.parametrize("seed", range(10))
def test_all_causes_that_drawn_configurations_meet_are_found_and_nothing_else(seed: int) -> None:
    """Three deadly values and two deadly pairs among 150 knobs of three values: nearly every configuration fails."""
    rng = np.random.default_rng(seed)
    names = [f"k{index}" for index in rng.choice(KNOBS, size=7, replace=False)]
    singles: list[dict[str, Value]] = [{name: 1} for name in names[:3]]
    pairs: list[dict[str, Value]] = [{names[3]: 2, names[4]: 1}, {names[5]: 1, names[6]: 1}]
    system = System([*singles, *pairs])
    drawn = draw(seed, 50)
    bisection = bisect(system)
    found: list[Culprit] = []
    for configuration in drawn:
        # Nothing that is known is drawn again.
        known = {list(one.values)[-1]: 0 for one in found if one.values.items() <= configuration.items()}
        found += bisection.examine({**configuration, **known})
    met = {as_set(one) for one in system.refused if any(one.items() <= drawn_one.items() for drawn_one in drawn)}
    assert values_of(found) == met
    assert len(found) == len(met)
    assert system.trials <= len(drawn) + 30 * len(found)


@pytest.mark.parametrize("seed", range(5))
def test_what_is_known_spares_trials(seed: int) -> None:
    """A value that ran is innocent: the same cause is found with fewer trials after some configurations ran."""
    guilty = {"k7": 1}
    before, after = System([guilty]), System([guilty])
    drawn = draw(seed, 12)
    fresh = {**drawn[-1], "k7": 1}
    list(bisect(before).examine(fresh))
    bisection = bisect(after)
    for configuration in drawn[:-1]:
        assert list(bisection.examine({**configuration, "k7": 0})) == []
    used = after.trials
    (culprit,) = bisection.examine(fresh)
    assert culprit.values == guilty
    assert after.trials - used < before.trials


def test_a_pair_of_innocent_values_is_found() -> None:
    system = System([{"k1": 1, "k90": 2}])
    bisection = bisect(system)
    assert not list(bisection.examine({**dict.fromkeys(DEFAULT, 1)}))
    assert not list(bisection.examine({**dict.fromkeys(DEFAULT, 2)}))
    (culprit,) = bisection.examine({**dict.fromkeys(DEFAULT, 1), "k90": 2})
    assert culprit.values == {"k1": 1, "k90": 2}


def test_values_that_are_rounded_are_reported_with_what_they_become() -> None:
    system = System([], rounded={"k3": 8, "k4": 8})
    found = list(bisect(system).examine({**DEFAULT, "k3": 13, "k4": 16, "k5": 1}))
    assert [(one.values, one.in_force) for one in found] == [({"k3": 13}, "8")]
    assert bisect(system).runs({**DEFAULT, "k3": 8}) is False


def test_a_knob_that_another_one_changes_accuses_that_one() -> None:
    system = System([], tied={"k3": {"k60": 2}})
    (culprit,) = bisect(system).examine({**dict.fromkeys(DEFAULT, 1), "k60": 2})
    assert (dict(culprit.values), culprit.words) == ({"k3": 1, "k60": 2}, "k3 reads back -1")
    (culprit,) = bisect(system).examine({**dict.fromkeys(DEFAULT, 1), "k3": 0, "k60": 2})
    assert culprit.values == {"k60": 2}


def test_a_failure_of_the_machine_accuses_nothing() -> None:
    system = System([], disturbed=frozenset({1}))
    assert list(bisect(system).examine(dict.fromkeys(DEFAULT, 1))) == []


def test_nothing_is_accused_while_the_default_configuration_fails_too() -> None:
    system = System([{"k0": 1}], disturbed=frozenset(range(4, 1000)))
    assert list(bisect(system).examine({**DEFAULT, "k0": 1})) == []


def test_a_spent_budget_ends_the_search_without_a_guess() -> None:
    everything: dict[str, Value] = dict.fromkeys(DEFAULT, 1)
    free, limited = (System([{"k10": 1}, {"k20": 1}]) for _ in range(2))
    first, _ = bisect(free).examine(everything)
    found = []
    with pytest.raises(TrialsSpentError):
        for culprit in bisect(limited, budget=free.trials - 2).examine(everything):
            found.append(culprit)
    assert limited.trials == free.trials - 2
    assert found == [first]
