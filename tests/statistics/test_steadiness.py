"""Which windows count as steady: planted trends, noise alone, stalls, ties."""

import numpy as np
import pytest

from knobscope.statistics.steadiness import MIN_INTERVALS, find_trend, summarise_window


def test_a_warm_up_that_goes_on_is_a_trend() -> None:
    trend = find_trend([500 + 20 * second for second in range(20)])
    assert trend is not None
    assert not trend.is_steady
    assert trend.change == pytest.approx(19 * 20 / 690)
    assert trend.p_value < 1e-6


@pytest.mark.parametrize("correlation", [0.0, 0.3, 0.6])
@pytest.mark.parametrize("intervals", [10, 30])
def test_noise_is_seldom_a_trend_also_when_neighbours_are_alike(correlation: float, intervals: int) -> None:
    """Taken for independent, 30 intervals with an autocorrelation of .6 were called unsteady in 16 % of windows."""
    rng = np.random.default_rng(1)
    noise = rng.normal(size=(1500, intervals))
    for position in range(1, intervals):
        noise[:, position] = correlation * noise[:, position - 1] + np.sqrt(1 - correlation**2) * noise[:, position]
    trends = [find_trend(series) for series in np.rint(1000 + 200 * noise).astype(int).tolist()]
    unsteady = sum(trend is not None and not trend.is_steady for trend in trends)
    assert unsteady / len(trends) <= 0.02  # one in a hundred is what the test promises


def test_a_warm_up_in_noise_is_found() -> None:
    rng = np.random.default_rng(2)
    ramp = 1000 * (1 + 0.3 * np.linspace(-0.5, 0.5, 30))
    trends = [find_trend(np.rint(ramp + rng.normal(0, 50, 30)).astype(int).tolist()) for _ in range(200)]
    assert np.mean([trend is not None and not trend.is_steady for trend in trends]) > 0.95


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


def test_equal_intervals_have_no_trend() -> None:
    trend = find_trend([7] * 12)
    assert trend is not None
    assert (trend.change, trend.p_value, trend.is_steady) == (0, 1, True)


@pytest.mark.parametrize("operations", [[], [1] * (MIN_INTERVALS - 1), [0] * 20])
def test_too_little_to_tell(operations: list[int]) -> None:
    assert find_trend(operations) is None


def test_a_pause_and_halves_that_differ_are_described() -> None:
    columns = summarise_window([1, 2, 3], [1712, 3099, 0])
    assert columns["window_pause_s"] == 1
    assert columns["window_halves"] == pytest.approx(1549.5 / 3261.5)
    assert summarise_window([1, 2, 3, 4], [100, 0, 0, 100])["window_pause_s"] == 2
    assert summarise_window([1, 2, 3], [2, 3, 0]) == {}  # an empty interval of so few operations may be chance


def test_one_number_is_no_series() -> None:
    assert summarise_window([1], [1000]) == {}
    assert summarise_window([], []) == {}
