"""Every way in which a result can be less than it looks."""

from typing import Any

import pytest

from knobscope.stages.measure import RunFailedError, check_result
from knobscope.stages.measure.validity import check_watched, check_window

GOOD = [{"ops": 10 + n, "latency_p95_us": 1.0 + n, "latency_p99_us": 2.0} for n in range(4)]


@pytest.mark.parametrize(
    ("ok", "failed", "intervals", "status", "words"),
    [
        (0, 5, GOOD, "failed_run", "no operation succeeded"),
        (900, 100, GOOD, "failed_run", "100 of 1000"),
        (46, 0, GOOD[:3], "invalid", "3 intervals instead of 4"),
        (46, 0, [{**row, "ops": 0} for row in GOOD], "invalid", "empty"),
    ],
)
def test_refused(ok: int, failed: int, intervals: list[dict[str, Any]], status: str, words: str) -> None:
    with pytest.raises(RunFailedError, match=words) as caught:
        check_result({"ok": ok, "failed": failed}, intervals, 4, set(), 0.01)
    assert caught.value.status == status


def test_a_series_seen_before_is_refused_and_a_fresh_one_is_not() -> None:
    earlier: set[tuple[Any, ...]] = set()
    check_result({"ok": 46, "failed": 0}, GOOD, 4, earlier, 0.01)
    check_result({"ok": 47, "failed": 0}, [*GOOD[:3], {**GOOD[3], "ops": 14}], 4, earlier, 0.01)
    with pytest.raises(RunFailedError, match="the same series"):
        check_result({"ok": 46, "failed": 0}, GOOD, 4, earlier, 0.01)


@pytest.mark.parametrize(("window_s", "words"), [(1.0, "1 s instead of 2 s: .* ended early"), (2.4, "stood still")])
def test_a_window_that_is_too_short_or_too_long_is_refused(window_s: float, words: str) -> None:
    with pytest.raises(RunFailedError, match=words):
        check_window(window_s, 2, longest_s=0)
    for near in (1.6, 2.0, 2.2):
        check_window(near, 2, longest_s=0)


def test_the_workload_says_how_many_operations_may_fail() -> None:
    few = {"ok": 2705, "failed": 7}
    check_result(few, GOOD, 4, set(), 0.01)
    words = "7 of 2712 operations failed, more than 0.10%; the first: UPDATE: deadlock"
    with pytest.raises(RunFailedError, match=words):
        check_result(few, GOOD, 4, set(), 0.001, "UPDATE: deadlock")
    with pytest.raises(RunFailedError, match="1 of 2712 operations failed"):
        check_result({"ok": 2711, "failed": 1}, GOOD, 4, set(), 0)


def test_a_window_has_to_be_watched_from_its_start_on() -> None:
    check_watched(0.15, 1.0)
    with pytest.raises(RunFailedError, match=r"watched from 0\.35 s after the start of a window of 1 s on") as failed:
        check_watched(0.35, 1.0)
    assert failed.value.disturbance == "the machine was too slow to watch the device in time"
