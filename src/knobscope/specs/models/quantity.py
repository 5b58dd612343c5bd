"""Quantities with a unit, as specs write them: 1.6ms, 32KiB, 520MB/s, 5%. They are read once, when a spec is validated.

A quantity compares by its amount and is stored as the text of the spec: what identifies a run or a device stays as it
was written.
"""

import argparse
import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema

from knobscope.units import scale_size, scale_time


class Quantity:
    """An amount in the base unit of its kind, and the text that states it.

    ValueError: the text states none; the message says what to write instead.
    """

    __slots__ = ("amount", "text")
    units: ClassVar[Mapping[str, float]]
    noun: ClassVar[str]
    example: ClassVar[str]

    def __init__(self, text: str) -> None:
        match = re.match(self._pattern(), text)
        if match is None:
            raise ValueError(self._expect(text))
        self.amount, self.text = float(match[1]) * self.units[match[2]], text
        if math.isinf(self.amount):
            raise ValueError(self._expect(""))

    def __str__(self) -> str:
        """Return it as the spec states it."""
        return self.text

    def __repr__(self) -> str:
        """Return the call that makes it."""
        return f"{type(self).__name__}({self.text!r})"

    def __hash__(self) -> int:
        """Equal amounts have equal hashes."""
        return hash(self.amount)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same amount of the same kind: 1ms equals 1000us."""
        return type(other) is type(self) and self.amount == other.amount

    def __lt__(self, other: Self) -> bool:
        """Whether it is a smaller amount of the same kind."""
        return self.amount < other.amount if type(other) is type(self) else NotImplemented

    @classmethod
    def _pattern(cls) -> str:
        return rf"^([0-9]+(?:\.[0-9]+)?)({'|'.join(map(re.escape, cls.units))})$"

    @classmethod
    def _scale(cls, unit: str) -> float | None:
        """Return a unit in any spelling in the base unit; None for what is none of this kind."""
        return cls.units.get(unit)

    @classmethod
    def _expect(cls, text: str) -> str:
        """Say what was expected instead of a text; where it has the unit in another spelling, what to write."""
        units = " or ".join(filter(None, [", ".join([*cls.units][:-1]), [*cls.units][-1]]))
        amount = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?(\D+)", text)
        scale = cls._scale(amount[2]) if amount else None
        same = next((unit for unit, each in cls.units.items() if scale and math.isclose(each, scale)), None)
        hint = f": write {amount[1]}{same}" if amount and same else f", e.g. {cls.example}"
        return f"{cls.noun} with its unit ({units}){hint}"

    @classmethod
    def of_argument(cls, text: str) -> Self:
        """Return what an argument of a command states, for `argparse`."""
        try:
            return cls(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(f"found {text!r}; expected {error}") from error

    @classmethod
    def _show(cls, amount: float, *units: str) -> Self:
        """Return an amount with four digits, in the first of these units that it reaches, or else in the last."""
        unit = next((unit for unit in units if amount >= cls.units[unit]), units[-1])
        digits = f"{float(f'{amount / cls.units[unit]:.4g}'):.4f}".rstrip("0").rstrip(".")
        return cls(f"{digits}{unit}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take text or a quantity, give text."""
        return core_schema.no_info_wrap_validator_function(
            lambda value, _: value if isinstance(value, cls) else cls(value if isinstance(value, str) else ""),
            core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe it to editors and the reference; the message of `_expect` is for people."""
        return {**handler(core_schema.str_schema()), "pattern": cls._pattern(), "examples": [cls.example]}


class Duration(Quantity):
    """A length of time."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9, "min": 60e9, "h": 3600e9}
    noun = "a duration"
    example = "1.6ms"

    @classmethod
    def _scale(cls, unit: str) -> float | None:
        seconds = scale_time(unit)
        return None if seconds is None else seconds * 1e9

    @classmethod
    def of_ns(cls, nanoseconds: float) -> Self:
        """Return a duration with four digits."""
        return cls._show(nanoseconds, "s", "ms", "us")

    @property
    def ns(self) -> float:
        """In nanoseconds."""
        return self.amount

    @property
    def us(self) -> float:
        """In microseconds."""
        return self.amount / 1e3

    @property
    def s(self) -> float:
        """In seconds."""
        return self.amount / 1e9


class Size(Quantity):
    """An amount of data."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40}
    noun = "a size"
    example = "32KiB"

    @classmethod
    def _scale(cls, unit: str) -> float | None:
        return scale_size(unit)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if not self.amount.is_integer():  # nor is what has no end
            raise ValueError("a whole number of bytes")

    @classmethod
    def read_bytes(cls, text: str) -> int:
        """Return the bytes that an argument of a command states, with or without a unit, for `argparse`."""
        return int(text) if re.fullmatch("-?[0-9]+", text) else cls.of_argument(text).bytes

    @property
    def bytes(self) -> int:
        """In bytes."""
        return int(self.amount)


class Rate(Quantity):
    """Data per time."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
    noun = "a rate"
    example = "520MB/s"

    @classmethod
    def _scale(cls, unit: str) -> float | None:
        return scale_size(re.sub("(?:/s|ps)$", "", unit), kilo=1000)

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if self.amount == 0:
            raise ValueError("a rate above 0; leave the key out where there is no limit")

    @classmethod
    def of_bytes(cls, bytes_per_second: float) -> Self:
        """Return a rate with four digits."""
        return cls._show(bytes_per_second, "MB/s", "kB/s")

    @property
    def bytes(self) -> float:
        """In bytes per second."""
        return self.amount


class Percentage(Quantity):
    """A part of a whole; its amount is a share of one."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"%": 0.01}
    noun = "a percentage"
    example = "5%"
