"""The offset of a clock that is known: within what is said of its error, whatever the way there takes."""

from types import SimpleNamespace

import pytest

from knobscope.remote import clocks
from knobscope.remote.clocks import compare_clocks


@pytest.mark.parametrize("ahead_ns", [0, 3_600_000_000_000, -5_000_000])
def test_the_offset_of_a_shifted_clock_is_found(ahead_ns: int, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 1_700_000_000_000_000_000
    delays = iter([5_000_000, 4_000, 2_000_000, *[1_000_000] * 30])

    def tell_time() -> int:
        nonlocal now
        now += next(delays)  # the way there is slow, that back is not: the worst case
        return now + ahead_ns

    monkeypatch.setattr(clocks, "time", SimpleNamespace(time_ns=lambda: now))
    found = compare_clocks(tell_time)
    assert abs(found.offset_ns - ahead_ns) <= found.error_ns == 2_000  # half of the quickest round trip
