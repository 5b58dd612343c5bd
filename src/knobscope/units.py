"""Spellings of sizes and times, and what a number in one unit is in another one: those of specs, tables and messages.

1 kB is 1024 bytes, as in the configuration of a DBMS.
"""

import re

_SECONDS = {
    **dict.fromkeys(("ns", "nsec"), 1e-9),
    **dict.fromkeys(("us", "µs", "μs", "usec"), 1e-6),
    **dict.fromkeys(("ms", "msec"), 1e-3),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "mins", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hr", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86400),
}
_SIZE = re.compile(r"([kmgtp]?)(i?)(b|bytes?)?", re.IGNORECASE)
_LETTERS = " kmgtp"
#: A number and its unit; a unit has a number where a DBMS counts in pages of 8kB.
_AMOUNT = re.compile(r"(\d+(?:\.\d*)?|\.\d+)? ?([^\W\d_]*)")
#: A time in several units, as programs in Go write it: 1m40s.
_COMPOUND = re.compile(r"(?:\d+(?:\.\d+)?(?:[numµμ]s|[dhms])){2,}")
_GROUPED = re.compile(r"\d{1,3}(?:_\d{3})+")


def scale_time(unit: str) -> float | None:
    """Return a unit of time in seconds; None for what is none. M is no minute."""
    return _SECONDS.get(unit if unit == "M" else unit.lower())


def scale_size(unit: str, kilo: int = 1024) -> int | None:
    """Return a unit of size in bytes, None for what is none; `kilo` is what a k without an i multiplies by."""
    parts = _SIZE.fullmatch(unit)
    if parts is None or not unit:
        return None
    letter, binary, _ = parts.groups()
    return int((1024 if binary else kilo) ** _LETTERS.index(letter.lower() or " "))


def count_units(text: str, unit: str | None, kilo: int = 1024) -> float | None:
    """Return how many units a text with another unit means: 2048 of 8kB for 16MB. None: that cannot be told.

    A letter alone multiplies what is neither size nor time, and what has no unit: 2048 pages for 2k.
    """
    if _COMPOUND.fullmatch(text):
        counts = [count_units(part, unit, kilo) for part in re.findall(r"[\d.]+\D+", text)]
        return None if None in counts else float(f"{sum(filter(None, counts)):.12g}")
    amount, each = _AMOUNT.fullmatch(text), _AMOUNT.fullmatch(unit or "B")
    if amount is None or not amount[1] or not amount[2]:
        return None
    number, (size, name) = float(amount[1]), (each[1], each[2]) if each is not None else (None, "")
    seconds, is_letter = scale_time(name), len(amount[2]) == 1
    size_unit = scale_size(name, kilo) or (1 if is_letter and seconds is None else None)
    for written, wanted in ((scale_time(amount[2]), seconds), (scale_size(amount[2], kilo), size_unit)):
        if written is not None and wanted is not None:
            return float(f"{number * written / (wanted * float(size or 1)):.12g}")
    return None


def read_number(text: str, unit: str | None) -> float | None:
    """Return how many units a DBMS reports: a number alone, with its unit, or in another one. None: no number."""
    try:
        return float(text.lower().removesuffix((unit or "").lower()).strip())
    except ValueError:
        return count_units(text, unit) if unit else None


def propose_number(text: object, unit: str | None, *, kilo: int = 1024, is_whole: bool = False) -> str:
    """Return what to write instead of a text where a number in a unit is expected: `: write 2048`, or nothing."""
    if isinstance(text, float) and is_whole and text.is_integer():
        return f": write {int(text)}"
    if not isinstance(text, str):
        return ""
    count = float(text.replace("_", "")) if _GROUPED.fullmatch(text) else count_units(text, unit, kilo)
    if count is None or (is_whole and not count.is_integer()):
        return ""
    return f": write {int(count) if count.is_integer() else f'{count:.12g}'}"
