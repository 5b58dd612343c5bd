"""Quantities with a unit, as specs write them: 1.6ms, 32KiB, 520MB/s, 5%."""

import re
from collections.abc import Callable
from typing import Annotated, Any

from pydantic import AfterValidator, Field

__all__ = [
    "Duration",
    "Percentage",
    "Rate",
    "Size",
    "read_duration_ns",
    "read_percentage",
    "read_rate",
    "read_size",
    "show_duration",
    "show_rate",
    "show_size",
]

_DURATIONS = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
_SIZES = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
_RATES = {"kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
_NUMBER = r"([0-9]+(?:\.[0-9]+)?)"


def _pattern(units: dict[str, float] | dict[str, int]) -> str:
    return rf"^{_NUMBER}({'|'.join(map(re.escape, units))})$"


def _read(text: str, units: dict[str, float] | dict[str, int], expected: str) -> float:
    found = re.match(_pattern(units), text)
    if found is None:
        raise ValueError(expected)
    return float(found[1]) * units[found[2]]


def read_duration_ns(text: str) -> float:
    """Return a duration such as 1.6ms in nanoseconds; raises ValueError."""
    return _read(text, _DURATIONS, "a duration with its unit (ns, us, ms or s), e.g. 1.6ms")


def read_size(text: str) -> int:
    """Return a size such as 32KiB in bytes; raises ValueError."""
    size = _read(text, _SIZES, "a size with its unit (B, KiB, MiB, GiB or TiB), e.g. 32KiB")
    if size != int(size):
        raise ValueError("a whole number of bytes")
    return int(size)


def read_rate(text: str) -> float:
    """Return a rate such as 520MB/s in bytes per second; raises ValueError when it is none, or is 0."""
    rate = _read(text, _RATES, "a rate with its unit (kB/s, MB/s or GB/s), e.g. 520MB/s")
    if rate == 0:
        raise ValueError("a rate above 0; leave the key out where there is no limit")
    return rate


def read_percentage(text: str) -> float:
    """Return a percentage such as 5% as a share of one; raises ValueError."""
    return _read(text, {"%": 0.01}, "a percentage, e.g. 5%")


def show_duration(nanoseconds: float) -> str:
    """Return a duration as specs write it, with four digits."""
    unit = next((unit for unit in ("s", "ms", "us") if nanoseconds >= _DURATIONS[unit]), "us")
    return f"{_plain(nanoseconds / _DURATIONS[unit])}{unit}"


def show_rate(bytes_per_second: float) -> str:
    """Return a rate as specs write it, with four digits."""
    unit = "MB/s" if bytes_per_second >= 1e6 else "kB/s"
    return f"{_plain(bytes_per_second / _RATES[unit])}{unit}"


def show_size(size: int) -> str:
    """Return a size as specs write it: in the largest unit that gives a whole number."""
    unit = next(unit for unit in reversed(_SIZES) if size % _SIZES[unit] == 0)
    return f"{size // _SIZES[unit]}{unit}"


def _plain(number: float) -> str:
    digits = f"{float(f'{number:.4g}'):.4f}"
    return digits.rstrip("0").rstrip(".")


def _checked(read: Callable[[str], float]) -> Callable[[str], str]:
    def check(text: str) -> str:
        read(text)
        return text

    return check


def _schema(units: dict[str, float] | dict[str, int], example: str) -> Any:
    """For editors and the reference; the check has the better words."""
    return Field(json_schema_extra={"pattern": _pattern(units), "examples": [example]})


Duration = Annotated[str, AfterValidator(_checked(read_duration_ns)), _schema(_DURATIONS, "1.6ms")]
Size = Annotated[str, AfterValidator(_checked(read_size)), _schema(_SIZES, "32KiB")]
Rate = Annotated[str, AfterValidator(_checked(read_rate)), _schema(_RATES, "520MB/s")]
Percentage = Annotated[str, AfterValidator(_checked(read_percentage)), _schema({"%": 0.01}, "5%")]
