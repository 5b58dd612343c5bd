"""What a number in one unit is in another one, and what messages propose to write."""

import pytest

from knobscope.units import count_units, propose_number


@pytest.mark.parametrize(
    ("text", "unit", "count"),
    [
        ("16MB", "8kB", 2048),
        ("8k", "B", 8192),
        ("1M", None, 1 << 20),
        ("2k", "pages", 2048),
        ("0.5 GiB", "MB", 512),
        ("5min", "s", 300),
        ("5m", "s", 300),
        ("5m", "kB", 5120),
        ("1.5ms", "us", 1500),
        ("1d", "min", 1440),
        ("1m40s", "ms", 100_000),
        ("1h0m0s", "min", 60),
        ("1m40s", "kB", None),
        ("5s", None, None),
        ("5s", "kB", None),
        ("5M", "s", None),
        ("5kB", "pages", None),
        ("5", "kB", None),
        ("kB", "kB", None),
        ("8.0.17", "B", None),
    ],
)
def test_an_amount_is_counted_in_another_unit_of_its_kind(text: str, unit: str | None, count: float | None) -> None:
    assert count_units(text, unit) == count


@pytest.mark.parametrize(
    ("value", "unit", "is_whole", "proposal"),
    [
        ("1GB", "B", True, ": write 1073741824"),
        ("1500us", "ms", False, ": write 1.5"),
        ("1500us", "ms", True, ""),
        ("1_000_000", None, True, ": write 1000000"),
        (1e6, None, True, ": write 1000000"),
        (0.5, None, True, ""),
        (True, None, True, ""),
        ("many", None, True, ""),
    ],
)
def test_what_is_proposed_is_a_number_that_is_accepted(
    value: object, unit: str | None, is_whole: bool, proposal: str
) -> None:
    assert propose_number(value, unit, is_whole=is_whole) == proposal


def test_counts_are_decimal() -> None:
    assert propose_number("1M", None, kilo=1000, is_whole=True) == ": write 1000000"
