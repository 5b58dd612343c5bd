"""The offset of a clock that is known: within what is said of its error, whatever the way there takes."""

import time

import pytest

from knobscope.remote.clocks import compare_clocks


@pytest.mark.parametrize("ahead_ns", [0, 3_600_000_000_000, -5_000_000])
def test_the_offset_of_a_shifted_clock_is_found(ahead_ns: int) -> None:
    delays = iter([0.005, 0.0, 0.002, *[0.001] * 30])

    def tell_time() -> int:
        time.sleep(next(delays))  # the way there is slow, that back is not: the worst case
        return time.time_ns() + ahead_ns

    found = compare_clocks(tell_time)
    assert abs(found.offset_ns - ahead_ns) <= found.error_ns
    assert found.error_ns < 2e6
