"""Numbers and values as people read them: 1,234 ops/s, 4 KiB, 12 %, 3.1x.

The sentences of rules, the confirmation of causes and the report all use these, so that a number reads the same
wherever it stands. An effect below a factor of two is told in percent, a larger one as a factor: 40 % faster, 5.1x
slower.
"""

import math
import re
from collections.abc import Mapping
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from knobscope.specs import Dbms

#: Stands where there is no number.
UNKNOWN = "–"
#: Of an effect whose interval holds no change.
NO_CLEAR_EFFECT = "no clear effect"
#: Shares of fewer requests are not told, nor compared: one request more or less would change them by more than 3 %.
LEAST_REQUESTS = 30
_SPACE = "\u00a0"  # keeps number and unit on one line

#: Below this ratio a change is told in percent. "1.4x faster" may be understood as 2.4 times as fast, "40 %" may not.
_PERCENT_BELOW = 2
#: Units of sizes: B, kB, MiB, 8kB.
_BYTES = re.compile(r"(\d*)([kKMGT]?)(?:i?B|bytes?)")
#: Names that a list shows before it says how many more there are.
_MOST_NAMES = 4


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
    decimals = max(0, digits - 1 - math.floor(math.log10(abs(number))))
    text = f"{number:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def format_count(number: float | None) -> str:
    """Return a whole number: 1,234."""
    return UNKNOWN if number is None or math.isnan(number) else f"{number:,.0f}"


def describe_window(seconds: float, operations: int | None) -> str:
    """Say what ends a measured window: 5 s; 2,000 operations, or 60 s."""
    length = f"{format_number(seconds)} s"
    return length if operations is None else f"{format_count(operations)} operations, or {length},"


def format_decimals(number: float | None, decimals: int) -> str:
    """Return a number with so many digits after the point, which line up in a column: 1,234.5."""
    return UNKNOWN if number is None or math.isnan(number) else f"{number:,.{decimals}f}"


def format_rate(per_second: float | None, unit: str = "ops/s") -> str:
    """Return a rate: 1,234 ops/s."""
    if per_second is None or math.isnan(per_second):
        return UNKNOWN
    text = format_count(per_second) if per_second >= 100 else format_number(per_second)
    return f"{text}{_SPACE}{unit}"


def share_of(part: float | None, requests: float | None) -> float | None:
    """Return a share of requests; None of so few that it says nothing."""
    return None if part is None or requests is None or requests < LEAST_REQUESTS else part / requests


def format_share(share: float | None, limit: float | None = None) -> str:
    """Return a share of 1 in percent: 12 %. One that misses a limit does not look as if it met it: 94.8 %, not 95 %."""
    if share is None or math.isnan(share):
        return UNKNOWN
    percent = 100 * share + 0.0  # no −0
    if limit is not None and share != limit and format_share(share) == format_share(limit):
        texts = ((f"{percent:.{digits}f}", f"{100 * limit:.{digits}f}") for digits in range(1, 17))
        return next((text for text, other in texts if text != other), f"{percent:.16f}") + f"{_SPACE}%"
    if 99.5 <= percent < 100:  # not all of it
        return f"{math.floor(10 * percent) / 10:.1f}{_SPACE}%"
    if abs(percent) >= 10 or percent == round(percent):
        return f"{percent:.0f}{_SPACE}%"
    if 0 < abs(percent) < 0.1:
        return f"< 0.1{_SPACE}%" if percent > 0 else f"> -0.1{_SPACE}%"
    return f"{percent:.1f}".removesuffix(".0") + f"{_SPACE}%"


def format_part(part: float, total: float, nouns: str = "") -> str:
    """Return a part of a total in percent, of so few that this says nothing as a count: 12 %, 2 of 7 reads."""
    if total < LEAST_REQUESTS:
        return f"{format_count(part)} of {format_count(total)}{nouns and f' {nouns}'}"
    return f"{format_share(part / total)}{nouns and f' of the {nouns}'}"


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
    """Return a duration: 850 µs, 3.2 s, 4 min, 1 h 20 min."""
    if seconds is None or math.isnan(seconds):
        return UNKNOWN
    if 0 < seconds < 0.01:
        return format_micros(1e6 * seconds)
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
    """Say a natural-log ratio in words: 9.8x faster, 12 % slower, unchanged."""
    if abs(math.expm1(-abs(log_ratio))) < 0.0005:
        return "unchanged"
    return f"{_format_size_of(log_ratio, log_ratio)} {more if log_ratio > 0 else less}"


def describe_interval(log_ratio: float, low: float, high: float, more: str = "faster", less: str = "slower") -> str:
    """Return the ends of an interval in the form and sign of its estimate: 9 % to 25 %; all are natural-log ratios.

    Where the interval holds no change, each end says its direction: 23 % slower to 45 % faster.
    """
    if low <= 0 <= high:
        return f"{describe_change(low, more, less)} to {describe_change(high, more, less)}"
    near, far = sorted((low, high), key=abs)
    return f"{_format_size_of(near, log_ratio)} to {_format_size_of(far, log_ratio)}"


def describe_effect(
    log_ratio: float,
    low: float | None,
    high: float | None,
    more: str = "faster",
    less: str = "slower",
    is_clear: bool | None = None,
) -> str:
    """Say an effect with its 95 % interval; where nobody tells, it is clear if the interval does not hold no change."""
    if low is None or high is None:
        return describe_change(log_ratio, more, less)
    if is_clear is None:
        is_clear = not low <= 0 <= high
    effect = describe_change(log_ratio, more, less) if is_clear else NO_CLEAR_EFFECT
    return f"{effect} (95{_SPACE}% interval {describe_interval(log_ratio, low, high, more, less)})"


def _format_size_of(log_ratio: float, like: float) -> str:
    """Return how large a change is, without its direction: in percent or as a factor, as `like` is told."""
    if abs(like) < math.log(_PERCENT_BELOW):
        return format_share(abs(math.expm1(log_ratio)))
    return format_fold(abs(log_ratio))


def describe_move(before: str, after: str) -> str:
    """Say how a number that is already formatted changes: goes from 9 % to 4 %, stays at 100 %."""
    return f"stays at {after}" if before == after else f"goes from {before} to {after}"


def describe_setting(dbms: "Dbms | None", knob: str, reference: str | None, value: str | None, step: int | None) -> str:
    """Say what is done to a knob: Raising page_size from 4 KiB to 16 KiB; `step` says which way, None that none is."""
    before, after = (None if text is None else _number(text) for text in (reference, value))
    verb = "Changing"
    # Of values in an order of their own, a step may lead to a smaller number.
    if step is not None and after is not None and (before is None or (after > before) == (step > 0)):
        verb = "Raising" if step > 0 else "Lowering"
    start = "" if reference is None else f" from {format_value(dbms, knob, reference)}"
    return f"{verb} {knob}{start} to {format_value(dbms, knob, value)}"


def describe_beside(dbms: "Dbms | None", settings: Mapping[str, str] | None) -> str:
    """Say what other knobs are set to where a value was measured, to follow its name: ` with appendonly = yes`.

    Nothing where that is the default configuration.
    """
    phrases = [f"{name} = {format_value(dbms, name, value)}" for name, value in (settings or {}).items()]
    return f" with {join_words(phrases)}" if phrases else ""


def format_value(dbms: "Dbms | None", knob: str | None, value: str | None) -> str:
    """Return a knob's value with its unit: 64 KiB, 200 ms, 16 MiB for 2048 units of 8kB."""
    spec = dbms.knobs.get(knob or "") if dbms else None
    if value is None or dbms is None or spec is None:
        return value or UNKNOWN
    if spec.type == "boolean" and value in ("false", "true"):
        return dbms.booleans[value == "true"]
    number = _number(value)
    if number is not None and (meaning := spec.special.get(number)) is not None:
        return f"{value} ({meaning})"
    return value if number is None else _with_unit(number, value.removesuffix(".0"), spec.unit)


def format_unit(value: str | None, unit: str | None) -> str:
    """Return a value with its unit, where nothing else is known of its knob: 64 KiB, 200 ms, off."""
    number = None if value is None else _number(value)
    return (value or UNKNOWN) if number is None else _with_unit(number, str(value).removesuffix(".0"), unit)


def _with_unit(number: float, text: str, unit: str | None) -> str:
    if (size := _BYTES.fullmatch(unit or "")) and number >= 0:  # DBMSs mean 1024 bytes by kB
        return format_size(number * int(size[1] or 1) * 1024 ** " KMGT".index(size[2].upper() or " "))
    if unit is None:
        return text
    if number == 1 and unit.isalpha() and len(unit) > 3:  # a noun: 1 request, 2 requests; not s, ms, us
        unit = unit.removesuffix("es") if unit.endswith("sses") else unit.removesuffix("s")
    if unit.startswith("1/"):  # a rate
        return f"{text}{unit[1:]}"
    return f"{text} x {unit}" if unit[0].isdigit() else f"{text}{_SPACE}{unit}"


def _number(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def keep_units(text: str) -> str:
    """Return a text in which no line breaks between a number and its unit."""
    return re.sub(r"(?<=\d) (?=(?:%|[KMGT]iB|B|µs|ms|s|min|h|ops/s)(?!\w))", _SPACE, text)


def loosen_units(text: str) -> str:
    """Return a text with plain spaces only, for terminals and tables."""
    return text.replace(_SPACE, " ")


def plural(number: int, noun: str, nouns: str | None = None) -> str:
    """Return a number with its noun: 1 mismatch, 2 mismatches."""
    word = noun if number == 1 else nouns or f"{noun}s"
    return f"{format_count(number)}{_SPACE}{word}"


def join_words(words: list[str], last: str = "and") -> str:
    """Return a, b and c."""
    if len(words) < 2:
        return "".join(words)
    return f"{', '.join(words[:-1])} {last} {words[-1]}"


def list_names(names: list[str]) -> str:
    """Return names as a person lists them, the first few of many: a, b, c and 5 more."""
    if len(names) <= _MOST_NAMES:
        return join_words(names)
    return f"{', '.join(names[: _MOST_NAMES - 1])} and {len(names) - _MOST_NAMES + 1} more"
