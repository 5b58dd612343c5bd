"""Variances of few runs: as much of a common one as their spread allows."""

import numpy as np
import pytest

from knobscope.statistics.variances import moderate_variances


def draw(rng: np.random.Generator, prior_degrees: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Return true variances (scaled inverse chi squared about 1) and sums of squares with two degrees of freedom."""
    true = prior_degrees / rng.chisquare(prior_degrees, count)
    return true, true * rng.chisquare(2, count)


def test_the_degrees_of_the_prior_are_found_again() -> None:
    _, squares = draw(np.random.default_rng(1), 6.0, 20_000)
    variances, degrees = moderate_variances(squares, np.full(20_000, 2.0))
    usual = squares < np.quantile(squares, 0.9)  # the others are called noisier and keep their own
    assert np.median(degrees) == pytest.approx(8, rel=0.1)
    np.testing.assert_allclose(variances[usual], (6 + squares[usual]) / 8, rtol=0.1)


def test_moderated_variances_are_nearer_to_the_truth() -> None:
    true, squares = draw(np.random.default_rng(2), 6.0, 500)
    moderated, _ = moderate_variances(squares, np.full(500, 2.0))

    def distance(estimate: np.ndarray) -> float:
        return float(np.mean(np.log(estimate / true) ** 2))

    assert distance(moderated) < 0.5 * distance(squares / 2)
    assert distance(moderated) < distance(np.full(500, squares.sum() / 1000))


def test_one_that_is_clearly_noisier_keeps_its_own() -> None:
    squares = np.append(np.random.default_rng(3).chisquare(2, 19), 200.0)
    variances, degrees = moderate_variances(squares, np.full(20, 2.0))
    assert (variances[-1], degrees[-1]) == (100, 2)
    assert variances[:-1].max() < 10


def test_few_configurations_have_one_variance() -> None:
    variances, degrees = moderate_variances(np.array([1.0, 9.0, 2.0]), np.array([2.0, 2.0, 2.0]))
    assert variances.tolist() == [2.0] * 3
    assert degrees.tolist() == [6.0] * 3


def test_of_six_configurations_the_quiet_ones_do_not_share_the_noise_of_one() -> None:
    squares, degrees = np.array([1.0, 60.0, 2.0, 1.5, 3.0, 2.5]), np.full(6, 2.0)
    variances, _ = moderate_variances(squares, degrees)
    assert variances[1] == 30
    assert np.delete(variances, 1).max() < squares.sum() / degrees.sum()


def test_without_degrees_of_freedom_nothing_is_known() -> None:
    variances, degrees = moderate_variances(np.zeros(4), np.zeros(4))
    assert np.isnan(variances).all() and not degrees.any()
