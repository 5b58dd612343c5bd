"""Series that stand still or end too early are found; those that a system may well produce are not."""

import numpy as np
import pytest

from knobscope.statistics.series import (
    Series,
    find_exceptions,
    find_frozen,
    find_silent,
    find_truncated,
    measure_shapes,
)


def draw(rng: np.random.Generator, mean: float = 800, intervals: int = 20, latencies: bool = True) -> Series:
    ops = rng.poisson(mean * np.exp(rng.normal(0, 0.05, intervals))).astype(float)
    latency = np.round(1e6 / mean * np.exp(rng.normal(0, 0.05, (2, intervals)))) * np.array([[2.0], [5.0]])
    figures = np.column_stack([ops, *(latency if latencies else np.full((2, intervals), np.nan))])
    return Series(np.arange(1.0, intervals + 1), figures)


def test_a_series_is_described_by_its_rows() -> None:
    figures = np.array([[5, 1], [5, 1], [5, 2], [0, np.nan], [0, np.nan], [7, 3], [7, 3], [7, 3], [0, np.nan]], float)
    one, first = Series(np.arange(0.5, 5, 0.5), figures), Series(np.array([3.0]), figures[:1])
    shapes = measure_shapes([first, one, Series(one.t_s[:5] * 2, figures[:5]), first])
    assert shapes.intervals.tolist() == [1, 9, 5, 1]
    assert shapes.repeats.tolist() == [0, 2, 1, 0]
    assert shapes.starts.tolist() == [0, 2, 1, 0]
    assert shapes.chances.tolist() == [0, 3, 1, 0]
    assert shapes.goes_on.tolist() == [0, 2, 1, 0]
    assert shapes.longer.tolist() == [0, 1, 0, 0]
    assert shapes.silent.tolist() == [0, 1, 2, 0]
    assert shapes.pause.tolist() == [0, 2, 0, 0]
    assert shapes.end_s.tolist() == [3, 4.5, 5, 3]
    assert np.array_equal(shapes.step_s, [np.nan, 0.5, 1, np.nan], equal_nan=True)


@pytest.mark.parametrize("mean", [1.5, 20, 800, 30_000])
@pytest.mark.parametrize("latencies", [True, False])
def test_noise_is_neither_frozen_nor_silent(mean: float, latencies: bool) -> None:
    for seed in range(50):
        rng = np.random.default_rng(seed)
        shapes = measure_shapes([draw(rng, mean, latencies=latencies) for _ in range(40)])
        assert not find_frozen(shapes).any()
        assert not find_silent(shapes).any()


@pytest.mark.parametrize("begin", [0, 10, 15])
def test_frozen_runs_are_found(begin: int) -> None:
    rng = np.random.default_rng(1)
    series = [draw(rng) for _ in range(40)]
    for one in (series[4], series[17]):
        one.figures[begin:] = one.figures[begin]
    assert np.flatnonzero(find_frozen(measure_shapes(series))).tolist() == [4, 17]


def test_a_case_that_often_repeats_itself_is_not_frozen() -> None:
    """A limit on the rate holds half of all intervals at one count."""
    rng = np.random.default_rng(2)
    series = [draw(rng, latencies=False) for _ in range(40)]
    for one in series:
        one.figures[rng.random(20) < 0.5, 0] = 800
    assert not find_frozen(measure_shapes(series)).any()


def test_a_silent_end_is_found_unless_the_system_pauses_elsewhere_too() -> None:
    rng = np.random.default_rng(3)
    series = [draw(rng) for _ in range(40)]
    series[7].figures[12:] = [0, np.nan, np.nan]
    assert np.flatnonzero(find_silent(measure_shapes(series))).tolist() == [7]
    series[9].figures[3:8] = [0, np.nan, np.nan]
    assert not find_silent(measure_shapes(series)).any()


def test_a_series_that_ends_before_its_window_is_found_whether_the_window_is_reported_or_not() -> None:
    rng = np.random.default_rng(4)
    series = [draw(rng) for _ in range(20)]
    series[3] = Series(series[3].t_s[:12], series[3].figures[:12])
    shapes = measure_shapes(series)
    assert np.flatnonzero(find_truncated(shapes, np.full(20, 20.0))).tolist() == [3]
    assert np.flatnonzero(find_truncated(shapes, np.full(20, np.nan))).tolist() == [3]
    late = [Series(one.t_s - 1, one.figures) for one in series]  # a tool that tells the begin of an interval
    assert np.flatnonzero(find_truncated(measure_shapes(late), np.full(20, 20.0))).tolist() == [3]


def test_what_most_runs_of_a_configuration_do_is_no_damage() -> None:
    configuration = np.repeat(np.arange(10), 3)
    odd = np.zeros(30, bool)
    odd[[0, 3, 4, 5]] = True  # one run of configuration 0, all of configuration 1
    assert np.flatnonzero(find_exceptions(odd, configuration, 2)).tolist() == [0]
    assert not find_exceptions(odd, configuration, 4).any()
    assert not find_exceptions(np.ones(30, bool), np.arange(30) % 15, 2).any()
