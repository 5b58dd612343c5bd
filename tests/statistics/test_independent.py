import numpy as np
import pytest
from scipy.stats import ttest_ind

from knobscope.statistics.independent import join_errors
from knobscope.statistics.regression import t_interval, t_probability


def test_agrees_with_welchs_test() -> None:
    rng = np.random.default_rng(3)
    one, other = rng.normal(1.0, 0.1, 5), rng.normal(1.2, 0.4, 9)
    errors = np.array([[sample.std(ddof=1) / np.sqrt(len(sample))] for sample in (one, other)])
    error, degrees = join_errors(errors, np.array([[4.0], [8.0]]))
    difference = np.array([other.mean() - one.mean()])
    known = ttest_ind(other, one, equal_var=False)
    assert degrees[0] == pytest.approx(known.df)
    assert t_probability(difference, error, degrees)[0] == pytest.approx(known.pvalue)
    low, high = t_interval(difference, error, degrees)
    assert (low[0], high[0]) == pytest.approx(tuple(known.confidence_interval()))


def test_a_part_without_error_changes_nothing() -> None:
    error, degrees = join_errors(np.array([[0.2], [0.0]]), np.array([[7.0], [1.0]]))
    assert (error[0], degrees[0]) == pytest.approx((0.2, 7.0))


def test_what_is_unknown_stays_unknown() -> None:
    error, degrees = join_errors(np.array([[0.2, 0.1], [np.nan, 0.1]]), np.array([[7.0, 3.0], [1.0, 3.0]]))
    assert np.isnan(error[0]) and np.isnan(degrees[0])
    assert degrees[1] == pytest.approx(6.0)
