"""Variances of many configurations that were each measured a few times, when they need not be equal.

With three runs each, a variance of one's own has two degrees of freedom and tells little; one common variance calls the
noise of an unsteady configuration an effect. Between them lies the hierarchical model of G. K. Smyth (Statistical
Applications in Genetics and Molecular Biology 3, 2004; `squeezeVar` of the R package limma): how much the sample
variances differ says how many degrees of freedom the common one is worth. Smyth estimates them by moments; here they
are averaged out. A configuration that is clearly noisier than most keeps its own variance, with the few degrees of
freedom that it has (the idea of B. Phipson and others, Annals of Applied Statistics 10, 2016).
"""

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints

#: With fewer configurations nobody can tell whether their variances differ.
_LEAST_KNOWN = 6
_LEAST_DEGREES = 0.5
#: So improbable has a variance to be, were it that of most configurations, to stand for itself.
_NOISIER_P = 0.01
#: Degrees of freedom that the common variance may be worth, about evenly in their logarithm: from "tells hardly
#: anything of a configuration's own" to "they are all the same".
_WORTH = np.array([1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128, 10_000], float)
#: Steps of the logarithm of the common variance; priors less likely than this, relative to the best, are left out.
_STEP = 0.1
_LEAST_WEIGHT = 1e-5
#: The method converges from below, in fewer steps than this for all degrees of freedom that come up.
_NEWTON_STEPS = 8
#: Compared with the common variance, what is smaller than this is rounding, or a run that has none of what is counted.
_ROUNDING = 1e-8


def moderate_variances(squares: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return variance and degrees of freedom per configuration, from residual sums of squares and their degrees.

    All are of shape (configurations,). Where there are fewer than six variances, all get the common one. NaN without
    any degrees of freedom.
    """
    has_degrees = degrees >= _LEAST_DEGREES
    total = float(degrees[has_degrees].sum())
    if total <= 0:
        return np.full(len(squares), np.nan), np.zeros(len(squares))
    common = float(squares[has_degrees].sum()) / total
    varies = has_degrees & (squares > _ROUNDING * common * degrees)
    if varies.sum() < _LEAST_KNOWN:
        return np.full(len(squares), common), np.full(len(squares), total)
    own, own_degrees = np.where(has_degrees, squares, 0.0), np.where(has_degrees, degrees, 0.0)
    noisier = _find_noisier(squares, degrees, varies)
    joint, of_joint = _posterior(squares[varies], degrees[varies], own, own_degrees)
    of_joint = np.minimum(of_joint, total)
    return np.where(noisier, own / np.maximum(own_degrees, 1e-9), joint), np.where(noisier, own_degrees, of_joint)


def log_evidence(squares: Floats, degrees: Floats) -> float:
    """Return how likely residual sums of squares are under the model of `moderate_variances`, but for a constant."""
    has_degrees = (degrees >= _LEAST_DEGREES) & (squares > 0)
    squares, degrees = squares[has_degrees], degrees[has_degrees]
    if len(squares) < _LEAST_KNOWN:
        return float(-degrees.sum() / 2 * np.log(squares.sum())) if len(squares) else 0.0
    _, log_likelihood = _likelihoods(squares, degrees, _WORTH[::2], 4 * _STEP)
    likeliest = log_likelihood.max()
    total = float(np.log(np.exp(log_likelihood - likeliest).sum()) + likeliest)
    return total - float((degrees / 2 * np.log(squares)).sum())


def _find_noisier(squares: Floats, degrees: Floats, varies: Bools) -> Bools:
    """Return which configurations are clearly noisier than the median one (chi squared test)."""
    from scipy.special import chdtrc, gammaincinv

    typical = float(np.median(squares[varies] / (2 * gammaincinv(degrees[varies] / 2, 0.5))))
    noisier: Bools = varies & (chdtrc(np.maximum(degrees, _LEAST_DEGREES), squares / typical) < _NOISIER_P)
    return noisier


def _posterior(squares: Floats, degrees: Floats, own: Floats, own_degrees: Floats) -> tuple[Floats, Floats]:
    """Return variances and degrees of freedom of configurations (`own`), given the squares of those that have noise.

    True variances are taken as scaled inverse chi squared around a common one. What is not known of it, the common
    variance and how many degrees of freedom it is worth, is averaged out over a grid: twenty variances tell little of
    the latter, and intervals that trust a single estimate are too short. The average is matched by one scaled inverse
    chi squared per configuration, by mean and variance of the logarithm.
    """
    row, common, weight = _weigh_priors(squares, degrees)
    distinct, place = np.unique(own_degrees, return_inverse=True)  # many configurations have as many runs
    joint = _WORTH[:, None] + distinct
    mean, variance = (described[row][:, place] for described in _describe_logs(joint))
    log = np.log(_WORTH[row, None] * common[:, None] + own) + mean - np.log(joint)[row][:, place]
    return _match(weight @ log, weight @ (variance + log**2))


def average_variances(weight: Floats, variances: Floats, degrees: Floats) -> tuple[Floats, Floats]:
    """Return variance and degrees of freedom of the scaled inverse chi squared that is closest to a mixture of some.

    It has the mean and the variance of the mixture's logarithm. `variances` and `degrees` are of shape (mixed, any),
    `weight` (mixed,) adds up to 1.
    """
    mean, variance = _describe_logs(degrees)
    log = np.log(variances) + mean
    return _match(weight @ log, weight @ (variance + log**2))


def _describe_logs(degrees: Floats) -> tuple[Floats, Floats]:
    """Return mean and variance of the logarithm of scaled inverse chi squared variables around 1."""
    from scipy.special import digamma, zeta

    return np.log(degrees / 2) - digamma(degrees / 2), zeta(2, degrees / 2)


def _match(mean: Floats, mean_square: Floats) -> tuple[Floats, Floats]:
    """Return variance and degrees of freedom of the one whose logarithm has this mean and mean square."""
    from scipy.special import digamma

    matched = 2 * _inverse_trigamma(mean_square - mean**2)
    return 2 * np.exp(mean + digamma(matched / 2)) / matched, matched


def _weigh_priors(squares: Floats, degrees: Floats) -> tuple[Ints, Floats, Floats]:
    """Return the likely priors, shape (priors,): row of `_WORTH`, variance, and weight (all add up to 1)."""
    common, log_likelihood = _likelihoods(squares, degrees, _WORTH, _STEP)
    weight = np.exp(log_likelihood - log_likelihood.max())
    likely = np.nonzero(weight > _LEAST_WEIGHT)
    chosen = weight[likely]
    return likely[0], np.exp(common[likely[1]]), chosen / chosen.sum()


def _likelihoods(squares: Floats, degrees: Floats, worth: Floats, step: float) -> tuple[Floats, Floats]:
    """Return logarithms of common variances, and the log likelihood of each prior, shape (worth, common).

    Given the prior, a sample variance over the common one has an F distribution.
    """
    from scipy.special import gammaln

    worth = worth[:, None, None]
    logs = np.log(squares / degrees)
    low, high = _quartiles(logs)
    common = np.arange(low - 2, high + 2, step)
    ratio = np.log(degrees / worth) + logs - common[:, None]
    constant = gammaln((degrees + worth) / 2) - gammaln(degrees / 2) - gammaln(worth / 2)
    log_likelihood = (constant + degrees / 2 * ratio - (degrees + worth) / 2 * np.log1p(np.exp(ratio))).sum(axis=-1)
    return common, log_likelihood


def _quartiles(values: Floats) -> tuple[float, float]:
    """Return the first and the third quartile, in a tenth of the time of np.quantile for few values."""
    ordered = np.sort(values).tolist()
    places = [divmod(quarters * (len(ordered) - 1), 4) for quarters in (1, 3)]
    first, third = (
        ordered[index] + part / 4 * (ordered[min(index + 1, len(ordered) - 1)] - ordered[index])
        for index, part in places
    )
    return first, third


def _inverse_trigamma(value: Floats) -> Floats:
    """Solve trigamma(x) = value by Newton's method (Smyth 2004, appendix).

    trigamma(x) is zeta(2, x), and its derivative -2 zeta(3, x).
    """
    from scipy.special import zeta

    x = 0.5 + 1 / value
    for _ in range(_NEWTON_STEPS):
        trigamma = zeta(2, x)
        x += trigamma * (trigamma / value - 1) / (2 * zeta(3, x))
    return np.asarray(x)
