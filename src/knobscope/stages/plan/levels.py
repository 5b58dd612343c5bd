"""Which values of a knob a study looks at."""

import math
from collections.abc import Sequence

from knobscope.specs import Dbms, Knob, KnobChoice, Value


def default_configuration(dbms: Dbms, knobs: list[str], changed: dict[str, Value]) -> dict[str, Value]:
    """Return the default configuration: of knobs that a study names, with what it replaces, and of those whose default
    is the spec's choice: the DBMS would use another value.
    """
    chosen = [name for name, knob in dbms.knobs.items() if knob.built_in is not None]
    names = dict.fromkeys([*knobs, *changed, *chosen])
    return {name: dbms.knobs[name].canonical(changed.get(name, dbms.knobs[name].default)) for name in names}


def screening_levels(knob: Knob, choice: KnobChoice | None, count: int, default: Value) -> list[Value]:
    """Return the levels that screening draws from, in the knob's order; the default is always one of them.

    All values of an enum or boolean; of a number `count` values, evenly spaced on the knob's scale, and its special
    values; or just what the study lists. Of the others none is one that the DBMS refuses, or takes for another one.
    """
    if choice is not None and choice.values is not None:
        values = list(choice.values)
    elif knob.range is None:
        values = _accepted(knob, knob.values or [False, True])
    else:
        low, high = choice.range if choice and choice.range else knob.range
        values = _accepted(knob, [*_special_numbers(knob), *_spread(low, high, count, knob)])
    return _in_order(knob, [*values, default])


def sweep_levels(knob: Knob, choice: KnobChoice | None, default: Value) -> list[Value]:
    """Return the values of the one-at-a-time round and the default, in the knob's order.

    One value per order of magnitude for numbers with their ends, every enum value, and special values ("When Database
    Meets New Storage Devices", PVLDB 2023, section 3); or just what the study lists.
    """
    if (choice is not None and choice.values is not None) or knob.range is None:
        return screening_levels(knob, choice, 2, default)
    low, high = choice.range if choice and choice.range else knob.range
    first = math.ceil(math.log10(low)) if low > 0 else 0
    last = math.floor(math.log10(high)) if high > 0 else -1
    powers = [10**exponent for exponent in range(first, last + 1) if low <= 10**exponent <= high]
    return _in_order(knob, [*_accepted(knob, [*_special_numbers(knob), low, *powers, high]), default])


def _accepted(knob: Knob, values: Sequence[Value]) -> list[Value]:
    """Return what the DBMS makes of these values, without those that it refuses."""
    settled = [knob.settle(knob.canonical(value)) for value in values]
    return [value for value in settled if value not in knob.refused]


def _special_numbers(knob: Knob) -> list[Value]:
    return [value for value in knob.special if not isinstance(value, str)]


def _spread(low: float, high: float, count: int, knob: Knob) -> list[Value]:
    shares = [index / (count - 1) for index in range(count)]
    if knob.scale == "log":
        points = [low * (high / low) ** share for share in shares]
    else:
        points = [low + (high - low) * share for share in shares]
    if knob.type == "integer":  # beyond 2^53 a float may lie above the end that it stands for
        return [min(max(round(point), math.ceil(low)), math.floor(high)) for point in points]
    return [min(max(float(f"{point:.4g}"), low), high) for point in points]


def _in_order(knob: Knob, values: list[Value]) -> list[Value]:
    """Return distinct values in the order that counts as raising the knob."""
    distinct = list(dict.fromkeys(knob.canonical(value) for value in values))
    if knob.values is not None:
        return sorted(distinct, key=knob.values.index)
    numbers = sorted(value for value in distinct if not isinstance(value, str))
    return [*(value for value in distinct if isinstance(value, str)), *numbers]
