"""Which knobs can be tried, and how far: never further than plans go, nor than the machine's memory reaches."""

import os
import re

from knobscope.specs import Dbms, Knob, KnobCatalogue

_UNITS = {"B": 1, "kB": 2**10, "MB": 2**20, "GB": 2**30}


def is_numeric(knob: Knob) -> bool:
    """Whether a knob is a number, or an enum of numbers (sizes that a DBMS rounds)."""
    values = knob.values or []
    return knob.range is not None or (bool(values) and all(_is_number(value) for value in values))


def numeric_knobs(dbms: Dbms) -> list[str]:
    """Return the knobs of the spec that are numbers."""
    return [name for name, knob in dbms.knobs.items() if is_numeric(knob)]


def asked_range(dbms: Dbms, name: str, catalogue: KnobCatalogue | None) -> tuple[int | float, int | float]:
    """Return the smallest and largest value to try.

    The range of the spec; for an enum of numbers from the smallest value that the catalogue allows to the largest of
    the spec; for a knob of the catalogue alone its range, up to half of the machine's memory (a size without a unit is
    taken for bytes, because nobody told).
    """
    knob = dbms.knobs[name]
    entry = catalogue.knobs.get(name) if catalogue else None
    if knob.values is not None:
        numbers = [value for value in knob.values if _is_number(value) and not isinstance(value, str)]
        low = min([*numbers, *(entry.range[:1] if entry and entry.range else [])])
        return low, max(numbers)
    low, high = knob.range or [0, 0]
    if entry is not None and knob == entry:
        least = [value for value in (knob.default, low) if isinstance(value, int | float)]
        high = min(high, max(_half_of_memory(knob.unit), *least))
    return low, high


def _half_of_memory(unit: str | None) -> int:
    """Return half of the machine's memory, counted in a unit such as 8kB; in bytes when it is no unit of memory."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") // 2
    match = re.fullmatch(r"(\d*)(B|kB|MB|GB)", unit or "B")
    return memory // (int(match[1] or 1) * _UNITS[match[2]]) if match else memory


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
