"""How people and programs spell truth values, units, defaults and failures in the cells of a table."""

from knobscope.units import scale_size, scale_time

#: Spellings of truth values, in lower case.
TRUTH = {
    **dict.fromkeys(("true", "yes", "on", "t", "y", "enabled", "1"), True),
    **dict.fromkeys(("false", "no", "off", "f", "n", "disabled", "0"), False),
}

#: Words where a value is missing, in lower case.
MISSING_WORDS = frozenset(("", "nan", "na", "n/a", "#n/a", "null", "-", "--", "?"))

#: Words in a measured column for a run that failed, in lower case.
FAILURE_WORDS = MISSING_WORDS | {
    *("none", "nil", "err", "error", "exception", "fail", "failed", "failure", "timeout", "timed out", "time out"),
    *("time-out", "crash", "crashed", "oom", "killed", "abort", "aborted", "dnf", "invalid", "unavailable"),
    *("inf", "+inf", "-inf", "infinity", "-infinity", "#div/0!", "#value!", "#ref!", "#num!"),
}


def is_default_word(text: str) -> bool:
    """Whether a cell names the default instead of its value."""
    return text.lower().strip("()<>[]") in ("default", "dflt", "def")


def find_scales(units: set[str], kilo: int) -> tuple[dict[str, float], str] | None:
    """Return by what to multiply numbers with each of several units, and what they are then; None: not of one kind.

    Sizes count in 1024, as configuration files do, and rates in 1000, as devices do; `kilo` is of letters alone (10k).
    """
    sizes = {unit: scale_size(unit, kilo) for unit in units}
    if all(sizes.values()):
        is_size = any(unit.lower().endswith(("b", "byte", "bytes", "i")) for unit in units)
        scales = {unit: scale_size(unit, 1024) if is_size else scale for unit, scale in sizes.items()}
        description = "in bytes, 1 kB = 1024 B" if is_size else f"k = {kilo}"
        return {unit: float(scale or 1) for unit, scale in scales.items()}, description
    times = {unit: scale_time(unit) for unit in units}
    if all(times.values()):
        return {unit: scale for unit, scale in times.items() if scale}, "in seconds"
    rates = {unit: scale_size(unit[:-2], 1000) if unit.lower().endswith("/s") else None for unit in units}
    if all(rates.values()):
        return {unit: float(scale) for unit, scale in rates.items() if scale}, "in bytes per second, 1 kB/s = 1000 B/s"
    return None
