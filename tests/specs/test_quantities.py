"""Quantities are read once, compare by amount, and stay the text of the spec wherever they are stored."""

import argparse
import copy
import pickle

import pytest
from pydantic import BaseModel, ConfigDict

from knobscope.specs.models.quantity import Duration, Percentage, Quantity, Rate, Size


class Kept(BaseModel):
    model_config = ConfigDict(strict=True)
    delay: Duration = Duration("0us")
    size: Size | None = None


@pytest.mark.parametrize(
    ("quantity", "amount"),
    [
        (Duration("1.6ms"), 1.6e6),
        (Duration("0us"), 0),
        (Size("1.5GiB"), 3 << 29),
        (Rate("520MB/s"), 520e6),
        (Percentage("5%"), 0.05),
    ],
)
def test_an_amount_is_in_the_base_unit_of_its_kind(quantity: Quantity, amount: float) -> None:
    assert quantity.amount == amount
    assert f"{quantity}" == quantity.text
    assert [copy.deepcopy(quantity), pickle.loads(pickle.dumps(quantity))] == [quantity, quantity]  # noqa: S301 - ours


@pytest.mark.parametrize(
    ("kind", "text", "expected"),
    [
        (Duration, "5", "a duration with its unit"),
        (Duration, "-5ms", "a duration with its unit"),
        (Duration, "5 sec", "h\\): write 5s"),
        (Duration, "1.5m", "write 1.5min"),
        (Size, "5KB", "a size with its unit .*: write 5KiB"),
        (Size, "1M", "write 1MiB"),
        (Size, "64 apples", "e\\.g\\. 32KiB"),
        (Size, "0.3B", "a whole number of bytes"),
        (Rate, "0MB/s", "a rate above 0"),
        (Rate, "520 MB", "write 520MB/s"),
        (Rate, "520MiB/s", "e\\.g\\. 520MB/s"),
        (Percentage, "5", "a percentage"),
        (Percentage, "5 %", "write 5%"),
    ],
)
def test_what_is_no_quantity_is_refused_with_what_was_expected(kind: type[Quantity], text: str, expected: str) -> None:
    with pytest.raises(ValueError, match=expected):
        kind(text)
    with pytest.raises(argparse.ArgumentTypeError, match=expected):
        kind.of_argument(text)


def test_quantities_of_one_kind_compare_by_amount() -> None:
    assert Duration("1ms") == Duration("1000us")
    assert hash(Duration("1ms")) == hash(Duration("1000us"))
    assert Duration("999us") < Duration("1ms")
    assert Size("0B") != Duration("0us")
    with pytest.raises(TypeError):
        assert Size("1B") < Duration("1s")  # type: ignore[operator]


def test_an_amount_is_shown_with_four_digits_in_the_unit_that_it_reaches() -> None:
    assert [str(Duration.of_ns(ns)) for ns in (0, 123.456, 1234567, 2e9)] == ["0us", "0.1235us", "1.235ms", "2s"]
    assert [str(Rate.of_bytes(rate)) for rate in (999, 520e6)] == ["0.999kB/s", "520MB/s"]


def test_a_model_stores_the_text_that_it_was_given() -> None:
    kept = Kept.model_validate({"delay": "1.50ms", "size": Size("4KiB")})
    assert (kept.delay.us, kept.size and kept.size.bytes) == (1500, 4096)
    assert kept.model_dump(mode="json") == kept.model_dump() == {"delay": "1.50ms", "size": "4KiB"}
    assert Kept.model_validate_json(kept.model_dump_json()) == kept
    assert Kept.model_json_schema()["properties"]["delay"]["default"] == "0us"


@pytest.mark.parametrize(("kind", "unit"), [(Size, "B"), (Duration, "ms"), (Rate, "MB/s")])
def test_an_amount_has_an_end(kind: type[Quantity], unit: str) -> None:
    with pytest.raises(ValueError, match=r"e\.g\."):
        kind(f"{10**310}{unit}")
