"""The order of a knob's values: which way is raising it."""

from collections.abc import Sequence

from knobscope.specs import Knob, Value, value_text


def level_text(knob: Knob | None, level: Value) -> str:
    """Return a level of a fitted curve, where all numbers are real ones, as `knob_values` holds it."""
    is_whole = knob is not None and knob.type == "integer" and isinstance(level, float) and level.is_integer()
    return value_text(int(level) if is_whole else level)


def steps_from(knob: Knob | None, reference: str | None, values: Sequence[str]) -> dict[str, int | None]:
    """Return for each value how many steps it lies above (+) or below (-) the reference value.

    Special values (0 = off, -1 = automatic) have no position: a smaller number need not mean less there. Without a spec
    (`knob` None) numbers are in their order and words have none.
    """
    positions = {value: _position(knob, value) for value in values}
    start = None if reference is None else _position(knob, reference)
    order = sorted({position for position in (*positions.values(), start) if position is not None})
    return {
        value: None if position is None or start is None else order.index(position) - order.index(start)
        for value, position in positions.items()
    }


def _position(knob: Knob | None, value: str) -> float | None:
    if knob is not None and any(_same(value, special) for special in knob.special):
        return None
    if knob is not None and knob.range is None:
        names = [value_text(choice) for choice in knob.values or (False, True)]
        return names.index(value) if value in names else None
    try:
        return float(value)
    except ValueError:
        return None


def _same(value: str, special: Value) -> bool:
    if isinstance(special, str):
        return value == special
    try:
        return float(value) == special
    except ValueError:
        return False
