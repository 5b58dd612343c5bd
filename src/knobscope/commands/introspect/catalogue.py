"""Rows of a DBMS's catalogue to knobs: types, ranges, values and defaults in the words of the specs."""

import re
from collections import Counter
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from knobscope.errors import UserError
from knobscope.specs import CATALOGUE_KEYS, Introspection, Knob, Value, suggest
from knobscope.specs.models.expression import WORKLOAD_NAMES
from knobscope.specs.reading.source import LARGEST_REAL

#: A range that spans more than this is cut into levels by order of magnitude.
_WIDE = 1000
#: Numbers that stand for "no limit": around them no range can be guessed.
_NO_LIMIT = {2**bits - 1 for bits in (31, 32, 63, 64)}
#: Why a setting is left out that the spec has as a knob.
DESCRIBED = "only the spec describes it"
_FALSE, _TRUE = ("0", "off", "false", "no"), ("1", "on", "true", "yes")


class _NotDescribed(Exception):  # noqa: N818 - it says why a setting is no knob, which is no fault
    """The catalogue tells too little about a setting for a spec, or it is no knob; the message says why."""


@dataclass(frozen=True)
class Catalogue:
    """All settings of a DBMS: those that specs can describe, and why the others are not among them."""

    knobs: dict[str, dict[str, Any]]  # as YAML has them
    left_out: dict[str, str]  # setting -> reason

    def count_types(self) -> Counter[str]:
        """How many knobs there are of each type."""
        return Counter(str(knob["type"]) for knob in self.knobs.values())

    def group_left_out(self) -> dict[str, list[str]]:
        """Return reason -> settings, the most frequent reason first."""
        reasons = [reason for reason, _ in Counter(self.left_out.values()).most_common()]
        return {reason: [name for name, why in self.left_out.items() if why == reason] for reason in reasons}


def read_catalogue(
    introspection: Introspection, rows: Mapping[str, Mapping[str, Any]], described: Collection[str] = ()
) -> Catalogue:
    """Turn setting -> column -> value into knobs, sorted by name.

    `described` are the knobs of the spec: one of which the catalogue tells too little is left out for that reason.

    UserError: a row has a column that `introspect` does not know.
    """
    knobs: dict[str, dict[str, Any]] = {}
    left_out: dict[str, str] = {}
    for name in sorted(rows):
        if unknown := sorted(set(rows[name]) - set(CATALOGUE_KEYS)):
            raise UserError(
                f"`introspect.query` answers {unknown[0]!r} for {name}; expected "
                f"{suggest(unknown[0], list(CATALOGUE_KEYS))}"
            )
        try:
            if (reason := introspection.why_left_out(name)) is not None:
                raise _NotDescribed(reason)
            if name in WORKLOAD_NAMES:
                raise _NotDescribed("`requires` uses its name for the workload")
            knobs[name] = _read_knob(introspection, name, rows[name])
        except _NotDescribed as error:
            left_out[name] = DESCRIBED if name in described else str(error)
    return Catalogue(knobs, left_out)


def _read_knob(introspection: Introspection, name: str, row: Mapping[str, Any]) -> dict[str, Any]:
    """Return one knob in the order in which people write it."""
    columns = {key: value for key, value in row.items() if value is not None}
    if "no_knob" in columns:
        raise _NotDescribed(str(columns["no_knob"]))
    if "type" not in columns and "default" in columns:
        columns = {**columns, **_read_form(str(columns["default"]))}
    if (word := str(columns.get("type"))) not in introspection.types:
        raise _NotDescribed(f"its type is {word}" if "type" in columns else "nothing tells its type")
    apply = (
        introspection.apply
        if isinstance(introspection.apply, str)
        else introspection.apply.get(str(columns.get("context")))
    )
    if apply is None:
        raise _NotDescribed("a study cannot set it" + (f" ({columns['context']})" if "context" in columns else ""))
    if columns.get("default") is None:
        raise _NotDescribed("no default is reported")
    kind = introspection.types[word]
    if kind in ("integer", "real"):
        shape = _number(kind, columns, introspection.reach)
    else:
        shape = _boolean(columns) if kind == "boolean" else _enum(columns)
    words = {key: str(columns[key]) for key in ("built_in", "unit") if columns.get(key)}
    texts = {key: " ".join(str(columns.get(key, "")).split()) for key in ("category", "description")}
    given: dict[str, Any] = {key: columns[key] for key in ("writing", "readable") if key in columns}
    knob: dict[str, Any] = {
        "type": kind,
        **shape,
        **words,
        "apply": apply,
        **given,
        "mechanism": "other",
        **{key: text for key, text in texts.items() if text},
        "source": str(columns.get("source", _find_page(introspection, name))),
    }
    try:
        Knob.model_validate(knob)
    except ValidationError as error:
        raise _NotDescribed(f"what is reported does not fit together: {error.errors()[0]['msg']}") from error
    return knob


def _find_page(introspection: Introspection, name: str) -> str:
    return introspection.source.replace("{knob}", name).replace("{KNOB}", name.upper())


def _read_form(default: str) -> dict[str, str]:
    """Return the type that the form of a default suggests; of a quantity also its number and unit."""
    text = default.strip()
    if re.fullmatch(r"[+-]?[0-9]+", text):
        return {"type": "integer"}
    if re.fullmatch(r"[+-]?[0-9]*\.[0-9]+(e[+-]?[0-9]+)?", text, re.IGNORECASE):
        return {"type": "decimal"}
    if text.lower() in (*_FALSE, *_TRUE):
        return {"type": "switch"}
    if (match := re.fullmatch(r"([0-9]+)(?:\.0)? ?([A-Za-z]{1,5}(?:/s)?)", text)) is not None:
        return {"type": "quantity", "default": match[1], "unit": match[2]}
    return {"type": "text"}


def _number(kind: str, columns: Mapping[str, Any], reach: float | None) -> dict[str, Any]:
    """Range, default and scale; a default outside the range is a special value."""
    default = _parse_number(kind, columns["default"])
    guess = {}
    if "min" in columns and "max" in columns:
        low, high = (_parse_number(kind, columns[key]) for key in ("min", "max"))
    elif reach is not None and 0 < default < 2**64 and default not in _NO_LIMIT:
        low, high = _reach(kind, default, reach)
        guess = {"range_is": "guess"}
    else:
        raise _NotDescribed("no range is reported")
    if low >= high:
        raise _NotDescribed("its range is one value")
    scale = {"scale": "log"} if low > 0 and high / low >= _WIDE else {}
    special = {} if low <= default <= high else {"special": {default: "default"}}
    return {"range": [low, high], **guess, "default": default, **scale, **special}


def _reach(kind: str, default: float, reach: float) -> tuple[int | float, int | float]:
    """Return the range around a default of which no range is reported; an integer's begins at 1 at the least."""
    low, high = default / reach, default * reach
    if kind == "integer":
        return max(1, round(low)), round(high)
    return float(f"{low:.6g}"), float(f"{high:.6g}")


def _parse_number(kind: str, value: Any) -> int | float:
    text = str(value).strip()
    if kind == "real":
        try:
            number = float(text)
        except ValueError as error:
            raise _NotDescribed(f"{text!r} is no number") from error
        return float(f"{max(-LARGEST_REAL, min(LARGEST_REAL, number)):.6g}")  # the largest double means no limit
    if not re.fullmatch(r"[+-]?[0-9]{1,40}", text):
        raise _NotDescribed(f"{text!r} is no integer")
    return int(text)


def _boolean(columns: Mapping[str, Any]) -> dict[str, Any]:
    word = str(columns["default"]).lower()
    if word not in (*_FALSE, *_TRUE):
        raise _NotDescribed(f"its default {word!r} is neither on nor off")
    return {"default": word in _TRUE}


def _enum(columns: Mapping[str, Any]) -> dict[str, Any]:
    """Values and default, spelled as in the list of values."""
    values = columns.get("values") or []
    if not isinstance(values, (str, list)):
        raise _NotDescribed(f"its values {values!r} are no list")
    choices = [str(value).strip() for value in (values.split(",") if isinstance(values, str) else values)]
    if len(choices) < 2:
        raise _NotDescribed("its values are not told")
    default: Value | None = next((word for word in choices if word.lower() == str(columns["default"]).lower()), None)
    if default is None:
        raise _NotDescribed(f"its default {columns['default']!r} is none of its values")
    return {"values": choices, "default": default}
