"""The write unit of devices whose truth is known: times of the listed writes as a device with that unit would take."""

import random

import pytest

from knobscope.stages.characterise.unit import CANDIDATES, TimedWrite, find_unit, plan_writes

BEGIN, END = 4096 * 777, 4096 * 777 + (64 << 20)


def partly(address: int, size: int, unit: int) -> int:
    touched = range(address // unit, -(-(address + size) // unit))
    return sum(not (address <= number * unit and (number + 1) * unit <= address + size) for number in touched)


def timed(
    unit_kib: int | None, fill_us: float, *, at_a_time: int = 8, repeats: int = 40, noise: float = 0.08
) -> list[TimedWrite]:
    """Durable writes of a device: 1.2 ms for a flush, 2 us for each KiB, so much for partly written units."""
    rng = random.Random(5)
    writes = []
    for address, size in plan_writes(BEGIN, END, repeats, sweep=True):
        fills = -(-partly(address, size, unit_kib * 1024) // at_a_time) * fill_us if unit_kib else 0
        us = (1200 + fills) * rng.lognormvariate(0, noise) + size / 512
        hiccup = 20_000 if rng.random() < 0.01 else 0  # the machine was away
        writes.append(TimedWrite(address, size, 1000 * (us + hiccup)))
    return writes


@pytest.mark.parametrize("unit_kib", [8, 12, 16, 20, 24, 32, 48, 64, 96, 128, 256])
@pytest.mark.parametrize("at_a_time", [1, 8])
def test_unit_is_found_whatever_it_is(unit_kib: int, at_a_time: int) -> None:
    found = find_unit(timed(unit_kib, 300, at_a_time=at_a_time))
    assert found.unit_bytes == unit_kib * 1024
    assert 240 < found.extra_us < 720  # one unit or two, one after the other


def test_no_unit_is_an_answer_and_says_what_would_have_been_seen() -> None:
    found = find_unit(timed(None, 0))
    assert found.unit_bytes is None
    assert 0.03 <= found.visible_share < 0.3


def test_too_few_writes_find_nothing_and_say_how_little_they_could_see() -> None:
    few = find_unit(timed(32, 60, repeats=2, noise=0.5))
    assert few.unit_bytes is None
    assert few.visible_us > 60


def test_planned_writes_lie_between_the_addresses_in_place_and_shifted() -> None:
    planned = plan_writes(BEGIN, END, 3, sweep=True)
    assert all(address >= BEGIN and address + size <= END for address, size in planned)
    assert {address % size for address, size in planned} == {0, 4096}
    assert {size for _, size in planned} >= set(CANDIDATES)


def test_a_spot_that_is_smaller_than_a_write_leaves_that_write_out() -> None:
    planned = plan_writes(0, 256 << 10, 2, sweep=False)
    assert planned
    assert max(address + size for address, size in planned) <= 256 << 10
