"""Which windows count as steady: planted trends, noise alone, stalls, ties."""

import random

import pytest

from knobscope.measure.steadiness import MIN_INTERVALS, find_trend


def test_a_warm_up_that_goes_on_is_a_trend() -> None:
    trend = find_trend([500 + 20 * second for second in range(20)])
    assert trend is not None
    assert not trend.is_steady
    assert trend.change == pytest.approx(19 * 20 / 690)
    assert trend.p_value < 1e-6


def test_noise_alone_is_seldom_a_trend() -> None:
    drawn = random.Random(1)
    trends = [find_trend([round(drawn.gauss(1000, 200)) for _ in range(10)]) for _ in range(1000)]
    unsteady = sum(trend is not None and not trend.is_steady for trend in trends)
    assert 1 <= unsteady <= 20  # one in a hundred is what the test promises


def test_neither_a_stall_nor_a_trend_that_is_too_small_matters() -> None:
    level = [1000, 1010, 990, 1005, 995, 1002, 998, 1001]
    for stalled in (0, 7):
        trend = find_trend([0 if index == stalled else value for index, value in enumerate(level)])
        assert trend is not None
        assert trend.is_steady
    small = find_trend([1000 + index for index in range(30)])
    assert small is not None
    assert small.p_value < 1e-6
    assert small.is_steady


def test_as_scipy_says_with_ties() -> None:
    from scipy.stats import theilslopes

    operations = [5, 7, 7, 9, 8, 12, 12, 12, 11, 14]
    trend = find_trend(operations)
    assert trend is not None
    middle = 10  # of 9 and 11, the median
    assert trend.change == pytest.approx(theilslopes(operations).slope * 9 / middle)
    # by hand: S = 37 - 4, variance (10*9*25 - 2*1*9 - 3*2*11) / 18 = 120.33, z = 32 / 10.97
    assert trend.p_value == pytest.approx(0.00353, abs=2e-5)


@pytest.mark.parametrize("operations", [[], [1] * (MIN_INTERVALS - 1), [0] * 20])
def test_too_little_to_tell(operations: list[int]) -> None:
    assert find_trend(operations) is None
