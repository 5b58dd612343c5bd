"""Finds, in a configuration that fails, the fewest values that make it fail: delta debugging.

The algorithm is ddmin of Zeller and Hildebrandt, "Simplifying and Isolating Failure-Inducing Input" (IEEE TSE 28(2),
2002, section 3): what fails is cut into parts; where a part alone fails, or all but a part, the search goes on in that;
else the parts are halved. What remains fails, and without any single one of its values it does not. Before that the
values that occurred in a configuration that ran are left aside: when what remains still fails, they are innocent of it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TypeVar

from knobscope.specs import Value

Item = TypeVar("Item")
Change = tuple[str, Value]


class TrialsSpentError(Exception):
    """No further trial is allowed; what was being looked for is not known."""


@dataclass(frozen=True)
class Outcome:
    """What came of a trial: nothing where all is well."""

    words: str | None = None  # what the DBMS says when it does not start or serve
    changed: Mapping[str, str] = field(default_factory=dict)  # knob -> value in force, another one than was requested

    @property
    def is_well(self) -> bool:
        """Whether the DBMS started with exactly what was requested."""
        return self.words is None and not self.changed


@dataclass(frozen=True)
class Culprit:
    """The fewest values with which it fails, together with the default of all other knobs."""

    values: Mapping[str, Value]
    words: str
    in_force: str | None = None  # for one value that it starts with, and takes for this one


def minimise(items: Sequence[Item], fails: Callable[[Sequence[Item]], bool]) -> list[Item]:
    """Return a part of `items`, which fail, that fails and does not without any one of its items (ddmin)."""
    failing, parts = list(items), 2
    while len(failing) > 1:
        cuts = [round(index * len(failing) / parts) for index in range(parts + 1)]
        pieces = [failing[start:end] for start, end in pairwise(cuts)]
        complements = [failing[:start] + failing[end:] for start, end in pairwise(cuts)]
        if (piece := next((candidate for candidate in pieces if fails(candidate)), None)) is not None:
            failing, parts = piece, 2
        elif (
            parts > 2
            and (complement := next((candidate for candidate in complements if fails(candidate)), None)) is not None
        ):
            failing, parts = complement, parts - 1
        elif parts < len(failing):
            parts = min(len(failing), 2 * parts)
        else:
            break
    return failing


class Bisection:
    """Tries configurations of one DBMS, and explains those that fail.

    `attempt` carries out a trial of a configuration; `convert` makes a value of a knob of the text that the DBMS
    answers, None where it is none. At most `budget` trials are made: TrialsSpentError ends the one after.
    """

    def __init__(
        self,
        default: Mapping[str, Value],
        attempt: Callable[[dict[str, Value]], Outcome],
        convert: Callable[[str, str], Value | None],
        budget: int,
    ) -> None:
        self.default, self._attempt, self._convert, self.budget = dict(default), attempt, convert, budget
        self.trials = 0
        self._known: dict[frozenset[Change], Outcome] = {}
        self._innocent: set[Change] = set()

    def examine(self, configuration: Mapping[str, Value]) -> Iterator[Culprit]:
        """Try a configuration; yield what makes it fail, one after the other, until the rest of it runs.

        Nothing comes when it runs, or when it fails once and not again: that was the machine, and no value.
        """
        changes = self._changes(configuration)
        while not (outcome := self._try(changes)).is_well:
            culprits = self._explain(changes, outcome)
            if not culprits:
                return
            yield from culprits
            for culprit in culprits:
                changes = self._without(changes, culprit)

    def runs(self, configuration: Mapping[str, Value]) -> bool:
        """Whether a configuration was tried and ran."""
        outcome = self._known.get(frozenset(self._changes(configuration)))
        return outcome is not None and outcome.is_well

    def is_innocent(self, configuration: Mapping[str, Value]) -> bool:
        """Whether each of its values was in a configuration that ran."""
        return self._innocent.issuperset(self._changes(configuration))

    def _changes(self, configuration: Mapping[str, Value]) -> list[Change]:
        return [change for change in configuration.items() if change[1] != self.default[change[0]]]

    def _explain(self, changes: list[Change], outcome: Outcome) -> list[Culprit]:
        if outcome.words is not None:
            return self._explain_refusal(changes)
        affected = [change for change in changes if change[0] in outcome.changed]
        alone = [culprit for change in affected if (culprit := self._accuse(change)) is not None]
        return alone or [self._explain_change(changes, *next(iter(outcome.changed.items())))]

    def _explain_refusal(self, changes: list[Change]) -> list[Culprit]:
        """Return the values with which it does not start; none when it starts on a second trial.

        Before they are accused they have to fail once more, and the default configuration to run after that.
        """

        def fails(part: Sequence[Change]) -> bool:
            return self._try(part).words is not None

        if self._repeat(changes).words is None:
            return []
        guilty = minimise(self._suspects(changes, fails), fails)
        confirmation = self._repeat(guilty)
        if confirmation.words is None or not self._repeat([]).is_well:
            return []
        return [Culprit(dict(guilty), confirmation.words)]

    def _accuse(self, change: Change) -> Culprit | None:
        """Return that a value is refused, or taken for another one, when no other knob is changed; else None."""
        knob, value = change
        outcome = self._try([change])
        if outcome.words is not None:
            return Culprit({knob: value}, outcome.words)
        in_force = outcome.changed.get(knob)
        return None if in_force is None else Culprit({knob: value}, f"it reads back {in_force}", in_force)

    def _explain_change(self, changes: list[Change], knob: str, in_force: str) -> Culprit:
        """Return the values together with which a knob, alone in order, is not what was requested."""
        own = [change for change in changes if change[0] == knob]
        other_changes = [change for change in changes if change[0] != knob]

        def fails(part: Sequence[Change]) -> bool:
            return knob in self._try([*part, *own]).changed

        guilty = [*own, *minimise(self._suspects(other_changes, fails), fails)]
        return Culprit(dict(guilty), f"{knob} reads back {self._try(guilty).changed.get(knob, in_force)}")

    def _suspects(self, changes: list[Change], fails: Callable[[Sequence[Change]], bool]) -> list[Change]:
        """Return the values of which none was in a configuration that ran, if they fail by themselves; else all."""
        suspects = [change for change in changes if change not in self._innocent]
        return suspects if len(suspects) < len(changes) and suspects and fails(suspects) else changes

    def _without(self, changes: list[Change], culprit: Culprit) -> list[Change]:
        """Return the values without the last one of a culprit, or with what the DBMS takes it for instead."""
        knob, value = list(culprit.values.items())[-1]
        becomes = None if culprit.in_force is None else self._convert(knob, culprit.in_force)
        remaining = [change for change in changes if change != (knob, value)]
        return remaining if becomes in (None, value, self.default[knob]) else [*remaining, (knob, becomes)]

    def _try(self, changes: Sequence[Change]) -> Outcome:
        """Return the outcome of a trial, that of an earlier one with the same values where there was one."""
        key = frozenset(changes)
        return self._known[key] if key in self._known else self._repeat(changes)

    def _repeat(self, changes: Sequence[Change]) -> Outcome:
        """Carry out a trial whatever is known."""
        if self.trials >= self.budget:
            raise TrialsSpentError
        self.trials += 1
        outcome = self._attempt({**self.default, **dict(changes)})
        if outcome.is_well:
            self._innocent.update(changes)
        self._known[frozenset(changes)] = outcome
        return outcome
