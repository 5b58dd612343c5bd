"""The smallest effects that are found, against exact distributions and against simulated tests."""

import numpy as np
import pytest
from scipy.stats import nct, t

from knobscope.statistics.power import Aim, find_noncentrality, pool_noise
from knobscope.statistics.regression import Nuisance, fit_blocks, t_probability

AIM = Aim(effect=1.3, power=0.9, fdr=0.05, comparisons=60)


@pytest.mark.parametrize("alpha", [0.05, 0.05 / 24, 0.05 / 60])
@pytest.mark.parametrize("degrees", [2, 3, 5, 10, 40, 200])
@pytest.mark.parametrize("power", [0.8, 0.9])
def test_the_noncentrality_gives_the_power_that_was_asked_for(alpha: float, degrees: float, power: float) -> None:
    """By the exact noncentral t distribution: at least that, but for .002, and at most .015 more."""
    needed = float(find_noncentrality(alpha, power, np.array([degrees], float))[0])
    exact = nct.sf(t.isf(alpha / 2, degrees), degrees, needed)
    assert power - 0.002 <= exact <= power + 0.015


@pytest.mark.parametrize("degrees", [2, 6, 40])
def test_so_do_simulated_tests(degrees: int) -> None:
    """Tolerance: three standard errors of 20,000 tests are .006, and the approximation may be .002 off."""
    rng, tests = np.random.default_rng(5), 20_000
    needed = float(find_noncentrality(0.05 / 24, 0.9, np.array([degrees], float))[0])
    statistics = (rng.normal(needed, 1, tests)) / np.sqrt(rng.chisquare(degrees, tests) / degrees)
    found = float((statistics > t.isf(0.05 / 48, degrees)).mean())
    assert found == pytest.approx(0.9, abs=0.008)


@pytest.mark.parametrize("between_devices", [False, True])
def test_a_sweep_of_the_number_of_blocks_finds_what_was_asked_for(between_devices: bool) -> None:
    """Simulated sweeps of 12 values: 600 studies have a standard error of .012 in power."""
    aim = Aim(1.3, 0.9, 0.05, 24, between_devices)
    noise, values, sentinels = 0.12, 12, 3
    blocks = aim.count_blocks(noise, values, sentinels)
    assert blocks is not None
    setting = np.tile(np.concatenate([np.zeros(sentinels, int), np.arange(1, values + 1)]), blocks)
    block = np.repeat(np.arange(blocks), values + sentinels)
    levels = Nuisance.levels(block)
    rng, found = np.random.default_rng(6), []
    for _ in range(600):
        sides = []
        for effect in [np.log(1.3), 0.0][: 1 + between_devices]:
            response = rng.normal(0, noise, len(setting)) + effect * (setting == 4) + 0.5 * block
            sides.append(fit_blocks(response, setting, levels, values + 1))
        estimate = sides[0].estimates[3] - (sides[1].estimates[3] if between_devices else 0)
        error = np.sqrt(sum(side.errors[3] ** 2 for side in sides))
        p_value = t_probability(np.array([estimate]), np.array([error]), len(sides) * sides[0].degrees)[0]
        found.append(p_value <= 0.05 / 24 and estimate > 0)
    assert 0.9 - 3 * 0.012 <= np.mean(found) <= 0.99


def test_the_number_of_blocks_is_the_least_that_suffices() -> None:
    for noise in (0.01, 0.05, 0.1, 0.2, 0.4):
        blocks = AIM.count_blocks(noise, 20, 3)
        assert blocks is not None
        assert AIM.smallest_in_blocks(noise, blocks, 20, 3) <= 1.3
        assert blocks == 2 or AIM.smallest_in_blocks(noise, blocks - 1, 20, 3) > 1.3
    assert [AIM.count_blocks(noise, 20, 3) for noise in (0.001, 1e6)] == [2, None]


def test_a_difference_between_devices_takes_twice_the_blocks() -> None:
    """Twice the variance, but for whole blocks and degrees of freedom."""
    between = Aim(1.3, 0.9, 0.05, 60, between_devices=True)
    one, two = (aim.count_blocks(0.3, 20, 3) or 0 for aim in (AIM, between))
    assert two == pytest.approx(2 * one, abs=1)


def test_more_comparisons_and_unknown_errors_hide_more() -> None:
    errors, degrees = np.array([0.05, 0.1, np.nan]), np.array([40.0, 40.0, 0.0])
    smallest = AIM.smallest(errors, degrees)
    assert smallest[0] < smallest[1] < smallest[2] == np.inf
    assert (Aim(1.3, 0.9, 0.05, 600).smallest(errors, degrees)[:2] > smallest[:2]).all()
    assert AIM.suffices(smallest).tolist() == [True, False, False]


def test_noise_is_that_within_groups() -> None:
    rng = np.random.default_rng(7)
    group = np.repeat(np.arange(50), 3)
    noise, degrees = pool_noise(rng.normal(0, 0.1, 150) + group, group)
    assert degrees == 100
    assert noise == pytest.approx(0.1, rel=0.2)
    assert np.isnan(pool_noise(np.array([1.0, 2.0]), np.array([3, 4]))[0])
    assert np.isnan(pool_noise(np.array([]), np.array([], int))[0])
