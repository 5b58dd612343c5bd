"""Every way in which a result can be less than it looks."""

from typing import Any

import pytest

from knobscope.measure import RunFailedError, check_result

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
        check_result({"ok": ok, "failed": failed}, intervals, 4, set())
    assert caught.value.status == status


def test_a_series_seen_before_is_refused_and_a_fresh_one_is_not() -> None:
    earlier: set[tuple[Any, ...]] = set()
    check_result({"ok": 46, "failed": 0}, GOOD, 4, earlier)
    check_result({"ok": 47, "failed": 0}, [*GOOD[:3], {**GOOD[3], "ops": 14}], 4, earlier)
    with pytest.raises(RunFailedError, match="the same series"):
        check_result({"ok": 46, "failed": 0}, GOOD, 4, earlier)


def test_a_few_failed_operations_are_tolerated() -> None:
    check_result({"ok": 100_000, "failed": 3}, GOOD, 4, set())
    with pytest.raises(RunFailedError):
        check_result({"ok": 100_000, "failed": 300}, GOOD, 4, set())
