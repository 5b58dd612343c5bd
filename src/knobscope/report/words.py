"""Numbers and values as people read them: 1,234 ops/s, 4 KiB, 12 %, 3.1x."""

import math
import re
from datetime import datetime

from knobscope.specs import Dbms

__all__ = [
    "UNKNOWN",
    "describe_change",
    "format_count",
    "format_fold",
    "format_micros",
    "format_number",
    "format_rate",
    "format_seconds",
    "format_share",
    "format_size",
    "format_time",
    "format_value",
    "join_words",
    "keep_units",
    "plural",
]

#: Stands where there is no number.
UNKNOWN = "–"
_SPACE = "\u00a0"  # keeps number and unit on one line

#: Below this ratio a change reads better in percent.
_PERCENT_BELOW = 1.25


def format_number(number: float | None, digits: int = 2) -> str:
    """Return a number with so many significant digits, thousands separated."""
    if number is None or math.isnan(number):
        return UNKNOWN
    if math.isinf(number):
        return "∞" if number > 0 else "−∞"
    if number == 0:
        return "0"
    if abs(number) < 1e-4:
        return f"{number:.0e}"
    places = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:,.{places}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_count(number: float | None) -> str:
    """Return a whole number: 1,234."""
    return UNKNOWN if number is None or math.isnan(number) else f"{number:,.0f}"


def format_rate(per_second: float | None, unit: str = "ops/s") -> str:
    """Return a rate: 1,234 ops/s."""
    if per_second is None or math.isnan(per_second):
        return UNKNOWN
    text = format_count(per_second) if per_second >= 100 else format_number(per_second)
    return f"{text}{_SPACE}{unit}"


def format_share(share: float | None) -> str:
    """Return a share of 1 in percent: 12 %."""
    if share is None or math.isnan(share):
        return UNKNOWN
    percent = 100 * share
    if abs(percent) >= 10 or percent == round(percent):
        return f"{percent:.0f}{_SPACE}%"
    return f"< 0.1{_SPACE}%" if 0 < percent < 0.1 else f"{percent:.1f}{_SPACE}%"


def format_size(size_bytes: float | None) -> str:
    """Return a size in binary units: 4 KiB."""
    if size_bytes is None or math.isnan(size_bytes):
        return UNKNOWN
    units = ("B", "KiB", "MiB", "GiB", "TiB")
    power = min(int(math.log2(max(size_bytes, 1))) // 10, len(units) - 1)
    return f"{format_number(size_bytes / 1024**power, 3)}{_SPACE}{units[power]}"


def format_micros(micros: float | None) -> str:
    """Return a latency given in microseconds: 850 µs, 1.2 ms, 3 s."""
    if micros is None or math.isnan(micros):
        return UNKNOWN
    for limit, unit in ((1e3, "µs"), (1e6, "ms")):
        if micros < limit:
            return f"{format_number(micros / limit * 1e3, 2 if micros / limit < 0.1 else 3)}{_SPACE}{unit}"
    return f"{format_number(micros / 1e6, 3)}{_SPACE}s"


def format_seconds(seconds: float | None) -> str:
    """Return a duration: 3.2 s, 4 min, 1 h 20 min."""
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    if seconds < 90:
        return f"{format_number(seconds)}{_SPACE}s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours}{_SPACE}h {minutes}{_SPACE}min" if hours else f"{minutes}{_SPACE}min"


def format_time(moment: datetime | None) -> str:
    """Return a moment to the minute: 2026-11-21 08:34."""
    return UNKNOWN if moment is None else f"{moment:%Y-%m-%d %H:%M}"


def format_fold(log_ratio: float | None) -> str:
    """Return the ratio behind a natural-log ratio: 3.1x, 0.32x."""
    if log_ratio is None or math.isnan(log_ratio):
        return UNKNOWN
    if abs(log_ratio) > math.log(1e6):
        return "> 1,000,000x" if log_ratio > 0 else "~0x"
    ratio = math.exp(log_ratio)
    return f"{ratio:.2f}x" if 0.1 <= ratio < 1.995 else f"{format_number(ratio)}x"


def describe_change(log_ratio: float, more: str = "faster", less: str = "slower") -> str:
    """Say a natural-log ratio in words: 9.8x faster, 12 % slower, as fast."""
    size = abs(log_ratio)
    word = more if log_ratio > 0 else less
    if math.exp(min(size, 50)) < _PERCENT_BELOW:
        share = abs(math.expm1(log_ratio))
        return f"{format_share(share)} {word}" if share >= 0.0005 else "unchanged"
    return f"{format_fold(size)} {word}"


def format_value(dbms: Dbms | None, knob: str | None, value: str | None) -> str:
    """Return a knob's value with its unit: 64 KiB, 200 ms, 128 x 8kB."""
    spec = dbms.knobs.get(knob or "") if dbms else None
    if value is None or dbms is None or spec is None:
        return value or UNKNOWN
    if spec.type == "boolean" and value in ("false", "true"):
        return dbms.booleans[value == "true"]
    number = _number(value)
    if number is not None and (meaning := spec.special.get(number)) is not None:
        return f"{value} ({meaning})"
    return value if number is None else _with_unit(number, value.removesuffix(".0"), spec.unit)


def _with_unit(number: float, text: str, unit: str | None) -> str:
    if unit in ("B", "byte", "bytes"):
        return format_size(number)
    if unit is None:
        return text
    return f"{text} x {unit}" if unit[0].isdigit() else f"{text}{_SPACE}{unit}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def keep_units(text: str) -> str:
    """Return a text in which no line breaks between a number and its percent sign."""
    return re.sub(r"(?<=\d) (?=%)", _SPACE, text)


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun: 1 mismatch, 2 mismatches."""
    word = noun if number == 1 else nouns or f"{noun}s"
    return f"{format_count(number)}{_SPACE}{word}"


def join_words(words: list[str], last: str = "and") -> str:
    """Return a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"
