"""Runs of a configuration in one block are alike: the mixed model finds by how much, and intervals hold."""

import numpy as np
import pytest

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.block_variation import fit_mixed, name_cells
from knobscope.statistics.regression import Cells, Nuisance, fit_blocks, t_interval

BLOCKS = 3


def draw_runs(rng: np.random.Generator, values: int, repeats: int, interaction: float) -> tuple[Floats, Ints, Ints]:
    """Return log throughput, configuration and block of a sweep whose default runs three times in a block."""
    setting = np.tile(np.r_[np.zeros(3, np.int64), np.repeat(np.arange(1, values + 1), repeats)], BLOCKS)
    block = np.repeat(np.arange(BLOCKS), len(setting) // BLOCKS)
    deviation = rng.normal(0, interaction, (BLOCKS, values + 1))[block, setting]
    return rng.normal(0, 0.3, BLOCKS)[block] + deviation + rng.normal(0, 0.02, len(setting)), setting, block


def levels_of(block: Ints) -> Floats:
    return np.column_stack([block == code for code in range(1, BLOCKS)]).astype(float)


def test_a_given_share_is_generalised_least_squares() -> None:
    import statsmodels.api as sm

    response, setting, block = draw_runs(np.random.default_rng(1), 4, 2, 0.05)
    code, share = name_cells(setting, block), 0.7
    correlation = np.where(code[:, None] == code, share, 0.0) + (1 - share) * np.eye(len(code))
    dummies = (setting[:, None] == np.arange(1, 5)).astype(float)
    design = np.column_stack([np.ones(len(code)), dummies, levels_of(block)])
    full = sm.GLS(response, design, sigma=correlation).fit()
    fit = fit_blocks(response, setting, Nuisance.of(levels_of(block)), 5, Cells(code, share))
    np.testing.assert_allclose(fit.estimates, full.params[1:5], atol=1e-10)
    np.testing.assert_allclose(fit.errors, full.bse[1:5], rtol=1e-8)
    assert Cells(code, share).log_determinant == pytest.approx(np.linalg.slogdet(correlation)[1])


@pytest.mark.parametrize(("values", "repeats"), [(20, 1), (6, 3)])
def test_intervals_hold_where_blocks_change_single_configurations(values: int, repeats: int) -> None:
    """Of 40 studies; as if all runs were independent, 82 % of the intervals held the truth, and 45 % with repeats."""
    rng, held, alike = np.random.default_rng(2), [], []
    parts = np.column_stack([np.arange(1, values + 1), np.zeros(values, np.int64)])
    for interaction in (0.05, 0.0) * 40:
        response, setting, block = draw_runs(rng, values, repeats, interaction)
        fit = fit_mixed(response, setting, Nuisance.levels(block), values + 1, block)
        if not interaction:
            alike.append(fit.weights @ fit.shares)
            continue
        estimates, errors, degrees = fit.contrast(parts, np.array([1.0, -1.0]))
        low, high = t_interval(estimates, errors, degrees)
        held += list((low <= 0) & (high >= 0))
    assert np.mean(held) > 0.91
    assert np.mean(alike) < 0.2


def test_without_repeats_in_a_block_all_runs_are_independent() -> None:
    response, setting, block = draw_runs(np.random.default_rng(3), 5, 1, 0.05)
    first = np.unique(name_cells(setting, block), return_index=True)[1]
    fit = fit_mixed(response[first], setting[first], Nuisance.levels(block[first]), 6, block[first])
    assert fit.shares.tolist() == [0.0]
