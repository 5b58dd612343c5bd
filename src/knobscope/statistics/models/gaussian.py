"""A Gaussian process with a length scale per factor (scikit-learn): the most from a few tens of runs."""

import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models.predicting import PredictingModel, unit_columns

#: Log-normal priors of variance, length scales and noise: median and spread (standard deviation of the logarithm). All
#: columns lie between 0 and 1, so a length scale of 5 says that a factor hardly bends what the others do.
_VARIANCE, _LENGTH, _NOISE = (1.0, 2.0), (5.0, 1.5), (0.01, 3.0)
_BENT = 1.0  # the length scales from which a second climb begins
_STEPS = 30
#: Runs beyond these add time, which grows with their third power, and hardly say more about length scales or mean.
_MOST_FOR_SCALES, _MOST_ROWS = 300, 2000


class GaussianProcess(PredictingModel):
    """Gaussian process regression with a squared exponential kernel and automatic relevance determination.

    Rasmussen and Williams, "Gaussian Processes for Machine Learning" (2006), sections 2.2 and 5.1. Length scales are
    those of the highest posterior density: with more factors than the runs can tell apart, the likelihood alone runs
    off to scales that fit the runs by chance.
    """

    name = "gaussian_process"

    def __init__(self, seed: int = 0) -> None:
        """`seed` fixes which rows stand for all, where there are very many."""
        super().__init__(seed)
        self._mean, self._spread = 0.0, 1.0
        self._start: Floats | None = None  # where the climb begins: parameters of a fit of nearly the same rows

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Fit to a response per row."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.gaussian_process import GaussianProcessRegressor

        self._mean, self._spread = float(np.mean(response)), float(np.std(response)) or 1.0
        order = np.random.default_rng(self.seed).permutation(len(response))[:_MOST_ROWS]
        columns, scaled = unit_columns(settings)[order], (response[order] - self._mean) / self._spread
        few = slice(None, _MOST_FOR_SCALES)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # a scale at its bound: the factor counts for nothing
            start = _make_kernel(columns.shape[1])
            is_warm = self._start is not None and len(self._start) == len(start.theta)
            if is_warm:
                start = start.clone_with_theta(self._start)
            optimizer = _climb if is_warm else _climb_twice
            tuned = GaussianProcessRegressor(start, optimizer=optimizer).fit(columns[few], scaled[few])
        self._model = GaussianProcessRegressor(tuned.kernel_, optimizer=None).fit(columns, scaled)
        return self

    def fresh(self) -> Self:
        """Return a model that has not been fitted, and whose climb begins where the one of this model ended."""
        model = super().fresh()
        model._start = None if self._model is None else self._model.kernel_.theta
        return model

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""
        predicted = np.asarray(self._model.predict(unit_columns(settings)), float)
        return predicted * self._spread + self._mean

    def importance(self, settings: Settings) -> dict[str, float]:
        """Share of what the prediction varies by in the terms of each factor; a short length scale alone is no effect.

        The part of a pair counts half for each.
        """
        shares = dict.fromkeys(settings.factors, 0.0)
        for explained in self.explain(settings, self.predict(settings)):
            for factor in explained.term.factors:
                shares[factor] += explained.explained_share / len(explained.term.factors)
        total = sum(shares.values()) or 1.0
        return {factor: share / total for factor, share in shares.items()}


def _make_kernel(columns: int) -> Any:
    from sklearn.gaussian_process.kernels import RBF, ConstantKernel, WhiteKernel

    signal = ConstantKernel(_VARIANCE[0], (1e-3, 1e3)) * RBF(np.full(columns, _LENGTH[0]), (1e-1, 1e3))
    return signal + WhiteKernel(_NOISE[0], (1e-6, 2.0))


def _climb(cost: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: Floats) -> tuple[Floats, float]:
    """Return the parameters (logarithms) of the highest posterior density, and its negative logarithm.

    `cost` gives the negative log-likelihood and its gradient.
    """
    from scipy.optimize import minimize

    scales = len(start) - 2
    medians = np.log(np.r_[_VARIANCE[0], np.full(scales, _LENGTH[0]), _NOISE[0]])
    spreads = np.r_[_VARIANCE[1], np.full(scales, _LENGTH[1]), _NOISE[1]]

    def penalised(parameters: Floats) -> tuple[float, Floats]:
        value, slope = cost(parameters)
        deviations = (parameters - medians) / spreads
        return value + float(deviations @ deviations) / 2, slope + deviations / spreads

    optimum = minimize(penalised, start, method="L-BFGS-B", jac=True, bounds=bounds, options={"maxiter": _STEPS})
    return optimum.x, float(optimum.fun)


def _climb_twice(cost: Callable[[Floats], tuple[float, Floats]], start: Floats, bounds: Floats) -> tuple[Floats, float]:
    """Climb from the start and from where all factors bend much; return what is higher: some heights have several."""
    bent = np.log(np.r_[_VARIANCE[0], np.full(len(start) - 2, _BENT), _NOISE[0]])
    return min((_climb(cost, begin, bounds) for begin in (start, bent)), key=lambda end: end[1])
