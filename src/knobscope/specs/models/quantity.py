"""Quantities with a unit, as specs write them: 1.6ms, 32KiB, 520MB/s, 5%. They are read once, when a spec is validated.

A quantity compares by its amount and is stored as the text of the spec: what identifies a run or a device stays as it
was written.
"""

import math
import re
from collections.abc import Mapping
from typing import Any, ClassVar, Self

from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler
from pydantic_core import CoreSchema, core_schema


class Quantity:
    """An amount in the base unit of its kind, and the text that states it. ValueError: the text states none."""

    __slots__ = ("amount", "text")
    units: ClassVar[Mapping[str, float]]
    example: ClassVar[str]
    expected: ClassVar[str]

    def __init__(self, text: str) -> None:
        match = re.match(self._pattern(), text)
        if match is None:
            raise ValueError(self.expected)
        self.amount, self.text = float(match[1]) * self.units[match[2]], text
        if math.isinf(self.amount):
            raise ValueError(self.expected)

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
    def _show(cls, amount: float, *units: str) -> Self:
        """Return an amount with four digits, in the first of these units that it reaches, or else in the last."""
        unit = next((unit for unit in units if amount >= cls.units[unit]), units[-1])
        digits = f"{float(f'{amount / cls.units[unit]:.4g}'):.4f}".rstrip("0").rstrip(".")
        return cls(f"{digits}{unit}")

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        """Take text or a quantity, give text."""
        return core_schema.no_info_wrap_validator_function(
            lambda value, read_text: value if isinstance(value, cls) else cls(read_text(value)),
            core_schema.str_schema(),
            serialization=core_schema.plain_serializer_function_ser_schema(str, return_schema=core_schema.str_schema()),
        )

    @classmethod
    def __get_pydantic_json_schema__(cls, schema: CoreSchema, handler: GetJsonSchemaHandler) -> dict[str, Any]:
        """Describe it to editors and the reference; the message of `expected` is for people."""
        return {**handler(core_schema.str_schema()), "pattern": cls._pattern(), "examples": [cls.example]}


class Duration(Quantity):
    """A length of time."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"ns": 1.0, "us": 1e3, "ms": 1e6, "s": 1e9}
    example = "1.6ms"
    expected = "a duration with its unit (ns, us, ms or s), e.g. 1.6ms"

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
    example = "32KiB"
    expected = "a size with its unit (B, KiB, MiB, GiB or TiB), e.g. 32KiB"

    def __init__(self, text: str) -> None:
        super().__init__(text)
        if not self.amount.is_integer():  # nor is what has no end
            raise ValueError("a whole number of bytes")

    @property
    def bytes(self) -> int:
        """In bytes."""
        return int(self.amount)


class Rate(Quantity):
    """Data per time."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"kB/s": 1e3, "MB/s": 1e6, "GB/s": 1e9}
    example = "520MB/s"
    expected = "a rate with its unit (kB/s, MB/s or GB/s), e.g. 520MB/s"

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


_BYTES = re.compile(r"(\d*\.?\d*) ?([kKMGT]?)(?:i?B|bytes?)?")


def count_units(text: str, unit: str | None) -> float | None:
    """Return how many units a text with another unit means: 2048 of 8kB for 16MB. None: that cannot be told.

    As in the configuration of a DBMS, 1 kB is 1024 bytes.
    """
    if re.fullmatch("ns|us|ms|s", unit or ""):
        try:
            return Duration(text).ns / Duration(f"1{unit}").ns
        except ValueError:
            return None
    amount, size = _BYTES.fullmatch(text), _BYTES.fullmatch(unit or "x")
    if amount is None or size is None or not amount[1].strip(".") or not re.search("[A-Za-z]", text):
        return None
    sizes = [float(match[1] or 1) * 1024 ** " KMGT".index(match[2].upper() or " ") for match in (amount, size)]
    return float(sizes[0] / sizes[1])


class Percentage(Quantity):
    """A part of a whole; its amount is a share of one."""

    __slots__ = ()
    units: ClassVar[Mapping[str, float]] = {"%": 0.01}
    example = "5%"
    expected = "a percentage, e.g. 5%"
