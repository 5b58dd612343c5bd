"""What the sweep measures of a knob, and what it compares that with.

A knob that counts only when another one has some value (`when`) shows nothing together with the default configuration
if that does not hold there; and a value that `requires` forbids there cannot be measured there at all. Such a value is
measured together with its own reference: the default configuration with the smallest change of other knobs that makes
`when` and every `requires` hold. Both lie in the same block and differ in the one knob, so the effect is that of the
knob alone, under the condition under which it has one. ConfigSpace calls such knobs conditional parameters (Lindauer et
al., "BOAH: A Tool Suite for Multi-Fidelity Bayesian Optimization", arXiv:1908.06756, 2019).
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations, product

from knobscope.specs import Case, Expression, StudySpecs, Value
from knobscope.stages.plan.levels import sweep_levels
from knobscope.stages.plan.sampling import Configuration, DesignSpace

#: A change of more knobs than these would be another configuration rather than a condition of a knob.
_MOST_CHANGED = 2


@dataclass(frozen=True)
class SweptValue:
    """A value of a knob, and what the sweep compares it with.

    `reference` is the default configuration with `change` in it, and None where no change makes the value count or
    allows it: then `reason` says why it is left out.
    """

    knob: str
    value: Value
    default: Configuration
    change: Configuration | None
    reason: str = ""

    @property
    def reference(self) -> Configuration | None:
        """The configuration that the value is compared with: it has the knob at its default."""
        return None if self.change is None else {**self.default, **self.change}

    @property
    def configuration(self) -> Configuration:
        """The configuration with the value."""
        return {**self.default, **(self.change or {}), self.knob: self.value}


def swept_values(specs: StudySpecs, case: Case, space: DesignSpace, knobs: Sequence[str]) -> Iterator[SweptValue]:
    """Yield all values that a sweep of these knobs is asked for, those that are left out included."""
    chosen, default = specs.study.knobs[case.dbms], dict(space.default)
    levels = {name: sweep_levels(space.dbms.knobs[name], chosen[name], space.default[name]) for name in space.levels}
    for knob in knobs:
        for value in levels[knob]:
            if value != default[knob]:
                change = smallest_change(space, levels, knob, value)
                reason = _explain(space, knob, value)
                yield SweptValue(knob, value, default, change, reason)


def sweep_configurations(values: Sequence[SweptValue]) -> list[Configuration]:
    """Return the configurations that measure these values: each once, references other than the default included."""
    configurations: list[Configuration] = []
    for swept in values:
        if swept.reference is not None:
            configurations += [swept.reference, swept.configuration] if swept.change else [swept.configuration]
    return list({tuple(configuration.items()): configuration for configuration in configurations}.values())


def _explain(space: DesignSpace, knob: str, value: Value) -> str:
    """Say why a value cannot be measured together with the default configuration; nothing where it can."""
    configuration = {**space.default, knob: value}
    if space.allows(configuration):
        return "" if space.counts(knob, configuration) else space.explain_idleness(knob, configuration)
    return space.explain_refusal(configuration)


def smallest_change(
    space: DesignSpace, levels: Mapping[str, Sequence[Value]], knob: str, value: Value
) -> Configuration | None:
    """Return the change of the fewest other knobs, by the fewest steps, with which a value counts and is allowed.

    Knobs move between the values that the sweep has of them: what a value is compared with is then often a value that
    is swept anyway. None: no change of up to two knobs does it.
    """
    if _fits(space, knob, value, {}):
        return {}
    movable = _related_knobs(space, knob)
    for count in range(1, _MOST_CHANGED + 1):
        changes = [
            dict(zip(names, target, strict=True))
            for names in combinations(movable, count)
            for target in product(
                *([level for level in levels[name] if level != space.default[name]] for name in names)
            )
        ]
        changes.sort(key=lambda change: sum(_steps(levels[name], space.default[name], change[name]) for name in change))
        if (smallest := next((change for change in changes if _fits(space, knob, value, change)), None)) is not None:
            return smallest
    return None


def _fits(space: DesignSpace, knob: str, value: Value, change: Configuration) -> bool:
    """Whether a value and the knob's default are both allowed together with a change, and the knobs count there."""
    reference = {**space.default, **change}
    configuration = {**reference, knob: value}
    counts = all(space.counts(name, configuration) for name in (knob, *change))
    return counts and space.allows(configuration) and space.allows(reference)


def _related_knobs(space: DesignSpace, knob: str) -> list[str]:
    """Return the other varied knobs that `when`, `requires` and clashes connect with a knob, also through others."""
    related, size = {knob}, 0
    clashes = [clash.values.keys() & set(space.levels) for clash in space.dbms.clashes]
    while len(related) > size:
        size = len(related)
        related |= {name for names in clashes if names & related for name in names}
        for name in space.levels:
            about = space.dbms.knobs[name]
            mentioned = _names(about.requirement) & set(space.levels)
            if name in related:
                related |= mentioned | (_names(about.condition) & set(space.levels))
            elif mentioned & related:
                related.add(name)
    return sorted(related - {knob})


def _names(expression: Expression | None) -> frozenset[str]:
    return expression.names if expression is not None else frozenset()


def _steps(levels: Sequence[Value], start: Value, end: Value) -> int:
    return abs(levels.index(end) - levels.index(start))
