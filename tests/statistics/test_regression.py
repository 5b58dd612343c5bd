"""The absorbed regression against the full one, and the probabilities built on it."""

import tracemalloc
from dataclasses import fields

import numpy as np
import pytest

from knobscope.statistics.regression import (
    BlockFit,
    Cells,
    Nuisance,
    adjust_for_fdr,
    fit_blocks,
    number_levels,
    t_interval,
    t_probability,
)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_equals_ordinary_least_squares(seed: int) -> None:
    """Estimates, errors, noise, p values and intervals of an unbalanced design are those of statsmodels."""
    import pandas as pd
    import statsmodels.formula.api as smf

    rng = np.random.default_rng(seed)
    n = 80
    frame = pd.DataFrame({"block": rng.integers(0, 4, n), "setting": rng.integers(0, 9, n), "position": rng.random(n)})
    frame["line"] = np.where(frame["block"] == 2, frame["position"], 0.0)
    frame["y"] = 5 + 0.3 * frame["block"] + 0.1 * frame["setting"] + 0.8 * frame["line"] + rng.normal(0, 0.2, n)
    full = smf.ols("y ~ C(block) + C(setting, Treatment(0)) + line", frame).fit()
    names = [f"C(setting, Treatment(0))[T.{code}]" for code in range(1, 9)]
    dummies = [frame["block"] == block for block in (1, 2, 3)]
    nuisance = np.column_stack([*dummies, frame["line"]]).astype(float)
    fit = fit_blocks(frame["y"].to_numpy(), frame["setting"].to_numpy(), Nuisance.of(nuisance), 9)
    low, high = t_interval(fit.estimates, fit.errors, fit.degrees)
    expected = full.conf_int().loc[names].to_numpy().T
    assert fit.degrees == full.df_resid
    assert fit.noise == pytest.approx(np.sqrt(full.mse_resid), abs=1e-10)
    np.testing.assert_allclose(fit.estimates, full.params[names], atol=1e-8)
    np.testing.assert_allclose(fit.errors, full.bse[names], atol=1e-8)
    np.testing.assert_allclose(t_probability(fit.estimates, fit.errors, fit.degrees), full.pvalues[names], atol=1e-8)
    np.testing.assert_allclose([low, high], expected, atol=1e-8)
    np.testing.assert_allclose(fit.nuisance[-1], full.params["line"], atol=1e-8)
    line_error = fit.noise * np.sqrt(fit.inverse[-1, -1])
    np.testing.assert_allclose(line_error, full.bse["line"], atol=1e-8)


@pytest.mark.parametrize("share", [0.0, 0.4])
def test_few_columns_of_each_run_give_the_numbers_of_a_column_per_block(share: float) -> None:
    """Six blocks with levels, two of which have a line and one of these a bend; the last configuration has no run."""
    rng = np.random.default_rng(4)
    block, setting = np.repeat(np.arange(6), 12), np.concatenate([rng.permutation(np.arange(12) % 5) for _ in range(6)])
    position, response = np.tile(np.linspace(-0.5, 0.5, 12), 6), rng.normal(5, 1, 72)
    line, bend = np.array([-1, 0, -1, -1, 1, -1]), np.array([-1, -1, -1, -1, 0, -1])
    parts = [number_levels(block), (line[block], position, 2), (bend[block], 4 * position**2, 1)]
    columns = [block == code for code in range(1, 6)]
    columns += [(block == 1) * position, (block == 4) * position, (block == 4) * 4 * position**2]
    cells = Cells(block * 5 + setting, share)
    fits = [
        fit_blocks(response, setting, nuisance, 6, cells)
        for nuisance in (Nuisance.join(parts), Nuisance.of(np.column_stack(columns).astype(float)))
    ]
    assert fits[0].degrees == fits[1].degrees == 72 - 5 - 8
    for field in fields(BlockFit):
        values = (getattr(fit, field.name) for fit in fits)
        np.testing.assert_allclose(*values, rtol=1e-9, atol=1e-12, err_msg=field.name)


def test_many_blocks_take_no_column_of_all_runs_each() -> None:
    """400 blocks of 60 runs: whole columns would take 77 MB each time that they are copied."""
    block, setting = np.repeat(np.arange(400), 60), np.tile(np.arange(60), 400)
    tracemalloc.start()
    try:
        fit_blocks(np.random.default_rng(1).normal(size=24_000), setting, Nuisance.levels(block), 60)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 30e6


def test_configuration_without_runs_is_unknown_and_leaves_others_alone() -> None:
    response = np.array([1.0, 1.1, 2.0, 2.1, 1.2, 2.2])
    setting = np.array([0, 0, 2, 2, 0, 2])
    fit = fit_blocks(response, setting, Nuisance.of(np.zeros((6, 0))), 3)
    assert np.isnan(fit.estimates[0])
    assert np.isnan(fit.errors[0])
    assert fit.estimates[1] == pytest.approx(1.0)
    assert fit.degrees == 4


def test_responses_that_never_change_show_no_effect() -> None:
    """All writes aligned in every run: no noise, no effect, and no division by zero into significance."""
    block = np.repeat([0.0, 1.0, 0.0], 4)[:, None]
    fit = fit_blocks(np.full(12, 0.1), np.tile([0, 0, 1, 2], 3), Nuisance.of(block), 3)
    assert fit.noise == 0
    assert t_probability(fit.estimates, fit.errors, fit.degrees).tolist() == [1.0, 1.0]


def test_effects_without_noise_are_certain() -> None:
    setting = np.tile([0, 0, 1, 2], 3)
    fit = fit_blocks(np.array([0.0, 0.0, 1.0])[setting], setting, Nuisance.of(np.zeros((12, 0))), 3)
    assert t_probability(fit.estimates, fit.errors, fit.degrees).tolist() == [1.0, 0.0]


def test_fdr_ignores_what_is_unknown() -> None:
    q_values = adjust_for_fdr(np.array([0.01, np.nan, 0.04, 0.03]))
    assert np.isnan(q_values[1])
    np.testing.assert_allclose(q_values[[0, 2, 3]], [0.03, 0.04, 0.04])
