"""Variances of many configurations that were each measured a few times, when they need not be equal.

With three runs each, a variance of one's own has two degrees of freedom and tells little; one common variance calls the
noise of an unsteady configuration an effect. Between them lies the empirical Bayes estimate (G. K. Smyth, Statistical
Applications in Genetics and Molecular Biology 3, 2004, section 6; `squeezeVar` of the R package limma): how much the
sample variances differ says how many degrees of freedom the common one is worth. A configuration that is clearly
noisier than most keeps its own variance, with the few degrees of freedom that it has (the idea of B. Phipson and
others, Annals of Applied Statistics 10, 2016).
"""

import numpy as np

from knobscope.statistics.arrays import Bools, Floats

__all__ = ["moderate_variances"]

#: With fewer configurations nobody can tell whether their variances differ.
_LEAST_KNOWN = 8
_LEAST_DEGREES = 0.5
#: So improbable has a variance to be, were it that of most configurations, to stand for itself.
_NOISIER_P = 0.01
#: Beside the common variance, what is smaller than this is rounding, or a run that has none of what is counted.
_ROUNDING = 1e-8


def moderate_variances(squares: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return variance and degrees of freedom per configuration, from residual sums of squares and their degrees.

    All are of shape (configurations,). Where there are fewer than eight variances, all get the common one. NaN without
    any degrees of freedom.
    """
    known = degrees >= _LEAST_DEGREES
    total = float(degrees[known].sum())
    if total <= 0:
        return np.full(len(squares), np.nan), np.zeros(len(squares))
    common = float(squares[known].sum()) / total
    if known.sum() < _LEAST_KNOWN or common == 0:
        return np.full(len(squares), common), np.full(len(squares), total)
    varies = known & (squares > _ROUNDING * common * degrees)
    own, own_degrees = np.where(known, squares, 0.0), np.where(known, degrees, 0.0)
    noisier = _find_noisier(squares, degrees, varies)
    prior, prior_degrees = _fit_prior(squares[varies] / degrees[varies], degrees[varies])
    if np.isfinite(prior_degrees):
        joint = (prior_degrees * prior + own) / (prior_degrees + own_degrees)
        of_joint = np.minimum(prior_degrees + own_degrees, total)
    else:
        rest = float(own_degrees[~noisier].sum())
        joint = np.full(len(squares), float(own[~noisier].sum()) / rest if rest else common)
        of_joint = np.full(len(squares), rest or total)
    return np.where(noisier, own / np.maximum(own_degrees, 1e-9), joint), np.where(noisier, own_degrees, of_joint)


def _find_noisier(squares: Floats, degrees: Floats, varies: Bools) -> Bools:
    """Return which configurations are clearly noisier than the median one (chi squared test)."""
    from scipy.special import chdtrc, gammaincinv

    if not varies.any():
        return varies
    typical = float(np.median(squares[varies] / (2 * gammaincinv(degrees[varies] / 2, 0.5))))
    noisier: Bools = varies & (chdtrc(np.maximum(degrees, _LEAST_DEGREES), squares / typical) < _NOISIER_P)
    return noisier


def _fit_prior(variances: Floats, degrees: Floats) -> tuple[float, float]:
    """Fit a scaled F distribution to the variances by moments of their logarithms: prior variance and its degrees."""
    from scipy.special import digamma, polygamma

    if len(variances) < _LEAST_KNOWN:
        return float("nan"), float("inf")
    half = degrees / 2
    logs = np.log(variances) - digamma(half) + np.log(half)
    spread = float(np.var(logs, ddof=1) - np.mean(polygamma(1, half)))
    if spread <= 0:
        return float("nan"), float("inf")
    prior_half = _inverse_trigamma(spread)
    return float(np.exp(np.mean(logs) + digamma(prior_half) - np.log(prior_half))), 2 * prior_half


def _inverse_trigamma(value: float) -> float:
    """Solve trigamma(x) = value by Newton's method (Smyth 2004, appendix)."""
    from scipy.special import polygamma

    x = 0.5 + 1 / value
    for _ in range(50):
        trigamma = float(polygamma(1, x))
        step = trigamma * (1 - trigamma / value) / float(polygamma(2, x))
        x += step
        if -step / x < 1e-8:
            break
    return x
