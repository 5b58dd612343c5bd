"""What the values of a knob in a designed table say: which is typical, and at which levels a model looks at them."""

from collections import Counter
from collections.abc import Collection

from knobscope.specs import Value

#: A number with more values than this is looked at on ...
MOST_LEVELS = 12
#: ... so many levels, each the middle one of equally many rows: an analysis of variance wants categories.
PARTS = 4


def find_typical(rows: Counter[Value]) -> Value:
    """Return the middle one of the rows where their values are numbers, else the most frequent value."""
    if all(map(_is_number, rows)):
        return _value_at(rows, 0.5)
    return rows.most_common(1)[0][0]


def choose_levels(rows: Counter[Value], reference: Value, special: Collection[Value] = ()) -> list[Value] | None:
    """Return the levels of a knob, with the reference in place of the nearest; None where each value is one.

    `special` values, such as 0 for off, have no place among the others: each of them is a level.
    """
    numbers = Counter({value: count for value, count in rows.items() if _is_number(value) and value not in special})
    if len(numbers) <= MOST_LEVELS:
        return list(rows) if numbers else None
    levels = list(dict.fromkeys(_value_at(numbers, (part + 0.5) / PARTS) for part in range(PARTS)))
    if _is_number(reference) and reference not in special:
        levels[min(range(len(levels)), key=lambda index: abs(levels[index] - reference))] = reference  # type: ignore[operator]
    return [*(value for value in rows if value not in numbers), *dict.fromkeys(levels)]


def _is_number(value: Value) -> bool:
    return not isinstance(value, str | bool)


def _value_at(rows: Counter[Value], share: float) -> Value:
    """Return the value that this share of the rows is at or below."""
    remaining = share * rows.total()
    for value in sorted(rows):
        remaining -= rows[value]
        if remaining <= 0:
            return value
    raise ValueError("no rows")
