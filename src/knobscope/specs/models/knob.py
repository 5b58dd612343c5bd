"""A knob: what a user may set in a DBMS, and what is known about it."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Literal

from pydantic import AfterValidator, Field

from knobscope.specs.models.expression import Expression, parse_expression
from knobscope.specs.models.writing import Apply, Writing, same_value
from knobscope.specs.reading.base import Misfit, SpecModel, Value, value_text
from knobscope.specs.reading.source import show_value
from knobscope.units import count_units, propose_number

Mechanism = Literal[
    "flush",
    "page_size",
    "double_write",
    "write_buffer",
    "io_workers",
    "prefetch",
    "change_buffer",
    "compaction",
    "compression",
    "checkpoint",
    "cache",
    "layout",
    "throttle",
    "workload",
    "kernel",
    "other",
]

KnobProperty = Literal["trade_off", "optimisation", "resource", "function", "none"]

_NUMERIC = ("integer", "real")
#: Text in the language of `requires`.
Condition = Annotated[str, AfterValidator(lambda text: parse_expression(text).text)]
Version = Annotated[str, Field(pattern=r"^[0-9]+(\.[0-9]+)*$")]


def _check_range(ends: list[int | float]) -> list[int | float]:
    """Return [low, high] when low is below high."""
    if ends[0] >= ends[1]:
        raise Misfit((), f"{ends}, which is reversed or empty", "[low, high] with low < high")
    return ends


Ends = Annotated[list[int | float], Field(min_length=2, max_length=2), AfterValidator(_check_range)]


def find_repeated(location: tuple[Value, ...], values: Sequence[Value]) -> Iterator[Misfit]:
    """Yield the values of a list that stand in it before; 1 and 1.0 are one value, 1 and true are two."""
    for index, value in enumerate(values):
        if any(same_value(value, earlier) for earlier in values[:index]):
            yield Misfit((*location, index), f"{show_value(value)} a second time", "each value once")


class Proposal(SpecModel):
    """What the documentation of a knob suggests about performance, by a model that has read that of other DBMSs."""

    property: KnobProperty = Field(description="Whether it is a trade-off, an optimisation, a resource, ... .")
    expect: Literal["faster", "slower", "none"] | None = Field(
        default=None, description="What raising it should do; absent where the property does not say."
    )
    confidence: float = Field(ge=0, le=1, description="Chance that the model gives that property.")


class Knob(SpecModel):
    """One knob of a DBMS."""

    type: Literal["integer", "real", "boolean", "enum"] = Field(description="What kind of value it takes.")
    range: Ends | None = Field(default=None, description="Smallest and largest value of a number, in `unit`.")
    range_is: Literal["allowed", "guess"] = Field(
        default="allowed",
        description="guess: nobody knows what the DBMS allows, so a study may name values outside `range`.",
    )
    values: Annotated[list[Value], Field(min_length=2)] | None = Field(
        default=None, description="All values of an enum, in the order that counts as raising it."
    )
    default: Value = Field(
        description="The value in the default configuration of studies: what the DBMS uses when nobody sets the knob, "
        "unless `built_in` is there."
    )
    built_in: Value | None = Field(
        default=None,
        description="What the DBMS uses when nobody sets the knob, where the spec chooses another `default`; of an "
        "enum also what is none of `values`; of a number also what is outside `range`, and words, where it depends on "
        "the machine: 80 % of memory.",
    )
    unit: str | None = Field(default=None, description="Unit of a number, as the DBMS counts it, e.g. 8kB or ms.")
    scale: Literal["linear", "log"] = Field(
        default="linear", description="Spacing of values between the ends of `range`."
    )
    special: dict[int | float | str, str] = Field(
        default_factory=dict,
        description="Values of a number with a meaning of their own, which may lie outside `range`, "
        "e.g. {0: off, -1: automatic}.",
    )
    apply: Apply = Field(
        description="When a new value takes effect: a fresh load of the data, a restart "
        "(or a new connection), or at once."
    )
    requires: Condition | None = Field(
        default=None,
        description="What must hold between this knob, other knobs, and `threads` and `records` of the workload, "
        "e.g. max_wal_size >= 2 * min_wal_size.",
    )
    when: Condition | None = Field(
        default=None,
        description="What must hold of other knobs, `threads` and `records` for this knob to count at all, in the "
        "language of `requires`, e.g. commit_delay > 0. Where the default configuration does not satisfy it, the sweep "
        "measures the knob together with the smallest change of other knobs that does.",
    )
    refused: dict[bool | int | float | str, str] = Field(
        default_factory=dict,
        description="Values that the DBMS refuses, though `range` or `values` hold them, with its words; in no plan.",
    )
    becomes: dict[bool | int | float | str, Value] = Field(
        default_factory=dict,
        description="Values that the DBMS takes for another one, e.g. {1000: 1024} where it rounds; plans have 1024.",
    )
    mechanism: Mechanism = Field(description="The I/O mechanism that it steers.")
    durability: bool | list[Value] | dict[bool | int | float | str, Literal[True] | Condition] = Field(
        default=False,
        description="The values that risk committed data; true where every change does. Of values that do so only "
        "together with others, a mapping: {off: true, full: journal_mode == 'delete'}, with conditions in the language "
        "of `requires`.",
    )
    expect: Literal["faster", "slower", "none"] | None = Field(
        default=None,
        description="The intuition: what raising it should do to performance; absent when there is none.",
    )
    proposal: Proposal | None = Field(
        default=None,
        exclude_if=lambda proposal: proposal is None,
        description="What `knobscope introspect` proposes for `expect`; it counts where that is absent.",
    )
    control: bool = Field(
        default=False,
        description="Whether it is a negative control: a knob that can change neither I/O nor speed, so that an effect "
        "of it is a false alarm. Needs `mechanism: other` and `expect: none`.",
    )
    alias: str | None = Field(default=None, description="Its name where it is written, when that differs.")
    writing: Writing | None = Field(
        default=None, description="How this knob is passed, when that differs from others with its `apply`."
    )
    since: Version | None = Field(default=None, description="First version that has it, in quotes: '18'.")
    until: Version | None = Field(
        default=None, description="Last version that has it, in quotes; '17' includes all of 17.x."
    )
    reads_back: dict[bool | int | float | str, Value] = Field(
        default_factory=dict, description="What the DBMS answers for a value that it writes differently."
    )
    readable: bool = Field(
        default=True,
        description="False where the DBMS cannot be asked for the value in force of this knob: it is taken on trust.",
    )
    category: str | None = Field(
        default=None, description="The part of the DBMS that it belongs to, in the DBMS's own words."
    )
    description: str | None = Field(default=None, description="What it does, in a sentence.")
    source: str = Field(pattern=r"^https?://", description="The page of the documentation that describes it.")

    def find_misfits(self) -> Iterator[Misfit]:
        """Yield keys that its type does not have and, when there are none, values that it cannot take."""
        if shape := list(self._find_wrong_keys()):
            yield from shape
            return
        yield from find_repeated(("values",), self.values or [])
        if (problem := self.problem_with(self.default)) is not None:
            yield Misfit(("default",), show_value(self.default), f"another value: it {problem}")
        if self.built_in is not None and (problem := self._problem_with_built_in(self.built_in)) is not None:
            yield Misfit(("built_in",), show_value(self.built_in), f"another value: it {problem}")
        if self.built_in is not None and same_value(self.built_in, self.default):
            found = f"{show_value(self.built_in)}, the `default`"
            yield Misfit(("built_in",), found, "it only where it is another value")
        if self.control:
            yield from self._find_effects()
        if isinstance(self.durability, list):
            yield from find_repeated(("durability",), self.durability)
        if self.default in self.refused or self.default in self.becomes:
            yield Misfit(
                ("default",), show_value(self.default), "a value that is neither `refused` nor `becomes` another one"
            )
        keyed = {"reads_back": [*self.reads_back], "refused": [*self.refused], "becomes": [*self.becomes]}
        named: list[tuple[tuple[Value, ...], Value]] = [
            ((key, value), value) for key, values in keyed.items() for value in values
        ]
        named += [(("becomes", value), effective) for value, effective in self.becomes.items()]
        has_keys = isinstance(self.durability, dict)
        named += [
            (("durability", value if has_keys else index), value) for index, value in enumerate(self.risky_values)
        ]
        for location, value in named:
            if (problem := self.problem_with(value)) is not None:
                yield Misfit(location, show_value(value), f"a value that the knob can take: it {problem}")

    def _find_effects(self) -> Iterator[Misfit]:
        """Yield what a negative control cannot have: a mechanism, an expected effect, a risk."""
        why = "since a `control` can change nothing"
        if self.mechanism != "other":
            yield Misfit(("mechanism",), repr(self.mechanism), f"other, {why}")
        if self.expect != "none":
            yield Misfit(("expect",), "nothing" if self.expect is None else repr(self.expect), f"none, {why}")
        if self.durability:
            yield Misfit(("durability",), "a risk", f"none, {why}")

    def _find_wrong_keys(self) -> Iterator[Misfit]:
        """Yield keys that do not belong to a knob of this type, or are missing."""
        if self.type in _NUMERIC and self.range is None:
            yield Misfit(("range",), "nothing", f"[low, high], which a knob of type {self.type} needs")
        if self.type == "enum" and self.values is None:
            yield Misfit(("values",), "nothing", "a list, which a knob of type enum needs")
        if self.type not in _NUMERIC:
            for key in ("range", "special"):
                if getattr(self, key):
                    yield Misfit((key,), f"this key for a knob of type {self.type}", "it for numbers only")
        if self.type != "enum" and self.values is not None:
            yield Misfit(("values",), f"this key for a knob of type {self.type}", "it for enums only")
        for index, end in enumerate(self.range or []):
            if self.type == "integer" and not isinstance(end, int):
                yield Misfit(("range", index), show_value(end), "an integer")
        if self.scale == "log" and self.range is not None and self.range[0] <= 0:
            expected = "linear, or a range above 0 (put 0 under `special`)"
            yield Misfit(("scale",), f"log for the range {self.range}", expected)

    @property
    def risky_values(self) -> list[Value]:
        """The values that risk committed data, some of them only together with others; nothing where all do."""
        return [] if isinstance(self.durability, bool) else list(self.durability)

    @property
    def risk_conditions(self) -> dict[Value, Expression]:
        """The values that risk committed data only together with others, each with its condition."""
        marks = self.durability if isinstance(self.durability, dict) else {}
        return {value: parse_expression(text) for value, text in marks.items() if isinstance(text, str)}

    def risks(self, value: Value, configuration: Mapping[str, Value]) -> bool:
        """Whether a value risks committed data in a configuration; where that lacks a knob that decides, it does."""
        if isinstance(self.durability, bool):
            return self.durability
        if not any(same_value(value, risky) for risky in self.risky_values):
            return False
        condition = self.risk_conditions.get(value)
        return condition is None or not condition.names <= configuration.keys() or condition.holds(configuration)

    def read(self, text: str) -> Value:
        """Return the value that tables hold as this text (JSON, words without quotes)."""
        for value in (*self.possible_values, *self.special):
            if value_text(value) == text:
                return value
        try:
            number: Value = json.loads(text)
        except ValueError:
            return text
        return number

    @property
    def own_default(self) -> Value | None:
        """What the DBMS uses when nobody sets the knob; None for a number that depends on the machine."""
        if self.built_in is None:
            return self.default
        return None if self.type in _NUMERIC and self._is_worded else self.built_in

    @property
    def _is_worded(self) -> bool:
        """Whether `built_in` need not be a value of the knob."""
        text = self.built_in if isinstance(self.built_in, str) else ""
        return self.type == "enum" or (self.type in _NUMERIC and " " in text)

    @property
    def possible_values(self) -> list[Value]:
        """All values of a boolean or enum; nothing for a number."""
        return [False, True] if self.type == "boolean" else self.values or []

    @property
    def requirement(self) -> Expression | None:
        """The parsed `requires`."""
        return parse_expression(self.requires) if self.requires is not None else None

    @property
    def condition(self) -> Expression | None:
        """The parsed `when`."""
        return parse_expression(self.when) if self.when is not None else None

    def problem_with(self, value: Value) -> str | None:
        """Say why the knob cannot take this value, or None when it can."""
        if not isinstance(value, bool) and value in self.special:
            return None
        if self.type == "boolean":
            hint = " (these files spell it true or false)" if value in ("on", "off", "yes", "no") else ""
            return None if isinstance(value, bool) else f"is not true or false{hint}"
        if self.values is not None:
            is_known = any(same_value(value, choice) for choice in self.values)
            word = "on" if value is True else "off"
            hint = f" (write {word})" if isinstance(value, bool) and word in self.values else self._find_size(value)
            return None if is_known else f"is none of [{', '.join(map(show_value, self.values))}]{hint}"
        return self.problem_outside(value)

    def _find_size(self, value: Value) -> str:
        """Return a hint to the number among `values` that a text means: 8192 for 8k."""
        numbers = [choice for choice in self.values or [] if not isinstance(choice, bool | str)]
        count = count_units(value, self.unit) if isinstance(value, str) else None
        return f" (write {numbers[numbers.index(count)]})" if count in numbers else ""

    def _problem_with_built_in(self, value: Value) -> str | None:
        """Say why this cannot be the DBMS's own value, or None when it can: of a number it may be outside `range`."""
        if self._is_worded or self.problem_with(value) is None:
            return None
        return self._problem_of_kind(value) if self.type in _NUMERIC else self.problem_with(value)

    def _problem_of_kind(self, value: Value) -> str | None:
        """Say why this is no number as the knob has them, or None when it is one."""
        wanted = (int,) if self.type == "integer" else (int, float)
        if not isinstance(value, bool) and isinstance(value, wanted):
            return None
        kind = "a whole number" if self.type == "integer" else "a number"
        proposal = propose_number(value, self.unit, is_whole=self.type == "integer")
        return f"is not {kind}{f' of {self.unit}' if self.unit else ''}{proposal}"

    def problem_outside(self, value: Value) -> str | None:
        """Say why the knob's range does not hold this value, or None when it does; special values do not count."""
        if (problem := self._problem_of_kind(value)) is not None:
            return problem
        assert isinstance(value, int | float)  # noqa: S101 - else it has a problem
        low, high = self.range or [value, value]
        holds = low <= value <= high or self.range_is == "guess"
        return None if holds else f"is outside [{low}, {high}]"

    def settle(self, value: Value) -> Value:
        """Return what the DBMS makes of a value that it takes for another one; else the value, also a refused one."""
        chain = [value]
        while (successor := self.becomes.get(chain[-1], chain[-1])) not in chain:
            chain.append(successor)
        return chain[-1]

    def canonical(self, value: Value) -> Value:
        """Return one form for equal values, so that 1 and 1.0 are one setting.

        Real numbers keep six significant digits, which is what DBMSs print when they are asked for the value in force.
        """
        return float(f"{value:.6g}") if self.type == "real" and not isinstance(value, str) else value
