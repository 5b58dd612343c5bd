"""Copies of runs are found, and numbers that coincide by chance are none."""

import numpy as np
import pandas as pd
import pytest
from known_tables import measured

from knobscope.statistics.copies import Figure, cautious_noise, chances_of_series, find_copies, measured_figure

Rng = np.random.Generator


def figures_of(speed: np.ndarray, tail: np.ndarray, cpu: np.ndarray, noise: float) -> list[Figure]:
    return [
        measured_figure(topic, values, np.full(len(values), 1e-5), noise)
        for topic, values in (("speed", speed), ("tail", tail), ("cpu", cpu))
    ]


def draw(rng: Rng, runs: int, digits: int | None, noise: float = 0.02) -> list[np.ndarray]:
    """Figures of runs of one configuration, rounded to so many digits."""
    columns = [mean * np.exp(rng.normal(0, noise, runs)) for mean in (8123.0, 3456.0, 12.5)]
    return columns if digits is None else [np.array([float(f"{x:.{digits}g}") for x in column]) for column in columns]


def copies(first: np.ndarray) -> list[int]:
    return np.flatnonzero(first != np.arange(len(first))).tolist()


@pytest.mark.parametrize("digits", [None, 6, 5, 4, 3, 2])
def test_noise_holds_no_copies_however_it_is_rounded(digits: int | None) -> None:
    for seed in range(40):
        rng = np.random.default_rng(seed)
        noise = [0.002, 0.02, 0.2][seed % 3]
        columns = draw(rng, 200, digits, noise)
        first = find_copies(figures_of(*columns, max(0.002, noise / 2)), np.repeat(np.arange(10), 20))
        assert copies(first) == []


@pytest.mark.parametrize("digits", [None, 6, 5])
def test_one_run_that_is_there_twice_is_found(digits: int | None) -> None:
    columns = draw(np.random.default_rng(1), 100, digits)
    for column in columns:
        column[70] = column[30]
    first = find_copies(figures_of(*columns, 0.01), np.repeat(np.arange(10), 10))
    assert copies(first) == [70]
    assert first[70] == 30


@pytest.mark.parametrize("digits", [None, 4, 3])
def test_a_table_that_was_appended_to_itself_is_found_even_where_single_runs_tell_little(digits: int | None) -> None:
    """One column of three digits: many runs have a twin by chance, but no twenty of them in the same order."""
    values = np.concatenate([draw(np.random.default_rng(2), 60, digits)[0]] * 2)
    block = np.repeat(np.arange(6), 20)
    first = find_copies([measured_figure("speed", values, np.full(120, 1e-4), 0.01)], block)
    assert set(range(60, 120)) <= set(copies(first))
    assert (first[60:] < 60).all()


def test_runs_that_lack_a_series_may_be_copies_and_those_with_another_one_are_none() -> None:
    columns = draw(np.random.default_rng(3), 40, None)
    for column in columns:
        column[[20, 21]] = column[[3, 4]]
    codes = np.arange(40.0)
    codes[20] = np.nan
    series = Figure("series", codes, np.full(40, 1e-6), may_lack=True)
    first = find_copies([*figures_of(*columns, 0.01), series], np.repeat(np.arange(4), 10))
    assert copies(first) == [20]


def test_values_that_hardly_differ_are_not_judged() -> None:
    values = np.random.default_rng(4).integers(1, 4, 400).astype(float)
    assert copies(find_copies([measured_figure("speed", values, np.full(400, 1e-4))], np.zeros(400, int))) == []


def test_noise_is_that_of_runs_of_one_configuration_in_one_block() -> None:
    rng = np.random.default_rng(5)
    configuration, block = np.tile(np.arange(5), 40), np.repeat(np.arange(10), 20)
    levels = np.exp(configuration + rng.normal(0, 1, 10)[block])
    found = cautious_noise(levels * np.exp(rng.normal(0, 0.04, 200)), configuration, block)
    assert found == pytest.approx(0.02, rel=0.3)  # half of it
    assert cautious_noise(levels, configuration, block) == 0.002  # none is seen: the least that is counted on


def test_a_long_series_is_no_chance_and_a_short_one_of_small_counts_is() -> None:
    rng = np.random.default_rng(6)
    long, short = rng.normal(5000, 100, (20, 3)), rng.integers(1, 5, (20, 1)).astype(float)
    assert chances_of_series([long, long[:1], long])[[0, 2]].max() < 1e-12
    assert chances_of_series([long, long[:1]])[1] == pytest.approx(chances_of_series([long[:1]])[0])
    assert chances_of_series([short]) == 1
    assert chances_of_series([np.full((3, 3), np.nan)]) == 1


@pytest.mark.parametrize(
    ("table", "column"),
    [
        ("mysql_5.6.26_grid.csv", "runtime"),
        ("berkeleydb_c_grid.csv", "y"),
        ("storm_wordcount.csv", "throughput"),
        ("storm_wordcount.csv", "latency"),
        ("pku_mysql57_sysbench_20knob.csv", "tps"),
    ],
)
def test_tables_that_others_measured_hold_no_copies(table: str, column: str) -> None:
    values = pd.read_csv(measured(table))[column].to_numpy(float)
    figure = measured_figure("speed", values, np.full(len(values), 1e-4))
    assert copies(find_copies([figure], np.zeros(len(values), int))) == []
