"""Numbers in the spelling of a column: units, thousands separators, decimal points or commas.

One cell alone often cannot say what its comma means, so all cells of a column are read together.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from knobscope.cells.spelling import find_scales

#: A longer text is no number, however many digits it has.
_LONGEST = 100
_SPACES = "\u00a0\u202f\u2009"
_NUMBER = re.compile(
    rf"([-+\u2212]?)((?:\d|[.,](?=\d))(?:[\d.,'_ {_SPACES}]*\d)?[.,]?)((?:[eE][-+]?\d+)?)"
    rf"[ {_SPACES}]*((?:[^\W\d_]|%|/s)[\w/%]*)?"
)


@dataclass(frozen=True)
class Style:
    """What separates thousands (nothing, or a character), and what the fraction."""

    group: str
    decimal: str

    @cached_property
    def _pattern(self) -> re.Pattern[str]:
        group, decimal = re.escape(self.group), re.escape(self.decimal)
        whole = rf"(?:[1-9]\d{{0,2}}(?:{group}\d{{3}})+|\d+)" if self.group else r"\d+"
        return re.compile(rf"{whole}(?:{decimal}\d*)?|{decimal}\d+")

    def fits(self, mantissa: str) -> bool:
        """Whether a mantissa looks like one of this style."""
        return self._pattern.fullmatch(mantissa) is not None

    def read(self, text: str) -> str:
        """Return the mantissa as Python writes it."""
        return (text.replace(self.group, "") if self.group else text).replace(self.decimal, ".")

    def describe(self) -> str:
        """Say what was made of the separators; nothing for plain numbers."""
        parts = [f"{self.group!r} between thousands"] if self.group else []
        return ", ".join([*parts, *(["',' before decimals"] if self.decimal == "," else [])])


_PLAIN = Style("", ".")
_STYLES = (
    _PLAIN,
    Style("", ","),
    *(Style(group, decimal) for group in ",.' _" for decimal in ".," if group != decimal),
)


@dataclass(frozen=True)
class Numbers:
    """What the texts of a column are as numbers."""

    values: dict[str, int | float]
    unread: list[str]  # texts that are no numbers of this column
    notes: list[str] = field(default_factory=list)  # what was done to them
    problem: tuple[str, str, str] | None = None  # a text, and why it can mean two things, and what to do
    decimal: str = ""  # what separates decimals, where the column shows it


@dataclass(frozen=True)
class _Part:
    sign: str
    mantissa: str
    exponent: str
    unit: str


def read_numbers(
    texts: Sequence[str],
    *,
    decimal: str | None = None,
    kilo: int = 1024,
    target: Mapping[str, float] | None = None,
    doubt_points: bool = False,
) -> Numbers:
    """Read the distinct texts of a column as numbers, all in one style and one unit.

    `decimal` says what separates decimals (None: the texts have to show it), `doubt_points` that other columns of the
    table have decimal commas. `kilo` is what a letter alone multiplies by (10k). `target` is unit -> scale of a column
    whose unit is known, in which numbers without a unit are.
    """
    parts = {text: part for text in texts if (part := _split(text)) is not None}
    scales, unit_notes, odd = _find_unit(parts, kilo, target, alone=len(parts) == len(texts))
    parts = {text: part for text, part in parts.items() if part.unit in scales}
    unread = [text for text in texts if text not in parts]
    if odd is not None:
        return Numbers({}, unread, problem=odd)
    mantissas = dict.fromkeys(part.mantissa for part in parts.values())
    styles = [style for style in _STYLES if all(map(style.fits, mantissas))]
    if decimal is not None and styles and all(style.decimal != decimal for style in styles):
        shown = next(iter(parts))
        return Numbers(
            {}, unread, problem=(shown, f"has no decimals behind {decimal!r}", "one --decimal for all columns")
        )
    style, doubt = _choose(styles, list(mantissas), decimal, doubt_points)
    if style is None and doubt is None:  # the separators of some cells are those of no number: versions, addresses
        ordinary = _most_common(list(mantissas))
        fitting = {text: part for text, part in parts.items() if ordinary.fits(part.mantissa)}
        numbers = read_numbers([*fitting], decimal=decimal, kilo=kilo, target=target) if fitting else Numbers({}, [])
        return Numbers(
            numbers.values, [text for text in texts if text not in numbers.values], numbers.notes, numbers.problem
        )
    if style is None:
        shown = next((text for text, part in parts.items() if part.mantissa == doubt), str(doubt))
        return Numbers({}, unread, problem=(shown, *_AMBIGUOUS))
    values = {text: _value(part, style, scales[part.unit]) for text, part in parts.items()}
    if any(isinstance(value, float) for value in values.values()):
        values = {text: float(value) for text, value in values.items()}
    notes = [note for note in (style.describe(), *unit_notes) if note]
    shows = style.decimal if style.decimal == "," or style.group == "," else ""
    return Numbers(values, unread, notes, decimal=shows)


_AMBIGUOUS = (
    "may be thousands or decimals, and no other cell of the column decides",
    "--decimal . or --decimal , to say what separates decimals",
)
_WITHOUT_UNIT = ("has no unit, though other cells of the column have one", "a unit in every cell, or in none")


def _split(text: str) -> _Part | None:
    match = _NUMBER.fullmatch(text) if len(text) <= _LONGEST else None
    if match is None or math.isinf(float(f"1{match[3]}") * 1e30):  # no unit makes it infinite
        return None
    sign, mantissa, exponent, unit = match.groups()
    mantissa = re.sub(rf"[{_SPACES}]", " ", mantissa)
    return _Part("-" if sign in ("-", "\u2212") else "", mantissa, exponent, unit or "")


def _find_unit(
    parts: Mapping[str, _Part], kilo: int, target: Mapping[str, float] | None, *, alone: bool
) -> tuple[dict[str, float], list[str], tuple[str, str, str] | None]:
    """Return the scale of each unit that can be read, what was done, and a cell whose unit is missing."""
    units = {part.unit for part in parts.values()} - {""}
    if target is not None:
        known_scales = {unit: target[unit] for unit in units if unit in target}
        return {"": 1, **known_scales}, [f"{', '.join(sorted(known_scales))} converted"] if known_scales else [], None
    if not units:
        return {"": 1}, [], None
    bare = [text for text, part in parts.items() if not part.unit and _needs_unit(part)]
    if len(units) == 1:
        scales, description = dict.fromkeys(units, 1.0), f"in {min(units)}"
        unknown = find_scales(units, kilo) is None and min(units) != "%"
        if unknown and (bare or not alone):
            return {"": 1}, [], None  # 3DES together with AES or 5 is a word
    else:
        scaling = find_scales(units, kilo)
        if scaling is None:
            return {"": 1}, [], None
        scales, description = scaling
    missing = (bare[0], *_WITHOUT_UNIT) if bare else None
    return {"": 1, **scales}, [f"with a unit ({', '.join(sorted(units))}): {description}"], missing


def _needs_unit(part: _Part) -> bool:
    """Whether a number without a unit could be any of several: 0 and -1 have a meaning of their own everywhere."""
    return part.mantissa.strip("0.,") not in ("",) and not (part.sign and part.mantissa == "1")


def _choose(
    styles: Sequence[Style], mantissas: Sequence[str], decimal: str | None, doubt_points: bool
) -> tuple[Style | None, str | None]:
    """Return the style of all mantissas; else a mantissa that can be read in two ways, or nothing."""
    if decimal is not None:
        styles = [style for style in styles if style.decimal == decimal]
    elif _PLAIN in styles:
        doubtful = [mantissa for mantissa in mantissas if "." in mantissa]
        grouped = doubt_points and doubtful and all(map(Style(".", ",").fits, doubtful))
        return (None, doubtful[0]) if grouped else (_PLAIN, None)
    readings = {tuple(float(style.read(mantissa)) for mantissa in mantissas): style for style in reversed(styles)}
    if len(readings) > 1:
        first, second = list(readings)[:2]
        return None, next(mantissa for mantissa, a, b in zip(mantissas, first, second, strict=True) if a != b)
    return next(iter(readings.values()), None), None


def _most_common(mantissas: Sequence[str]) -> Style:
    return max(_STYLES, key=lambda style: sum(map(style.fits, mantissas)))


def _value(part: _Part, style: Style, scale: float) -> int | float:
    text = f"{part.sign}{style.read(part.mantissa)}{part.exponent}"
    number: int | float = float(text) if any(mark in text for mark in ".eE") else int(text)
    if scale == 1:
        return number
    scaled = number * scale
    return int(scaled) if scale > 1 and scaled == int(scaled) else scaled
