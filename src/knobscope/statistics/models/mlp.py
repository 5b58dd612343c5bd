"""A small neural network (scikit-learn's multi-layer perceptron)."""

import warnings
from typing import Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models.predicting import PredictingModel, unit_columns


class Mlp(PredictingModel):
    """The net of Hui et al. (SIGMOD 2024): hidden layers of 10, 10 and 5 units, L-BFGS, standardised inputs.

    Beyond it, words are one-hot, numbers count as ranks, and the response is standardised, or L-BFGS stops at once.
    """

    name = "mlp"

    def __init__(self, seed: int = 0) -> None:
        """`seed` fixes the initial weights."""
        super().__init__(seed)
        self._centre = self._scale = np.zeros(0)
        self._mean, self._spread = 0.0, 1.0

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Fit to a response per row."""
        from sklearn.exceptions import ConvergenceWarning
        from sklearn.neural_network import MLPRegressor

        inputs = unit_columns(settings)
        self._centre, self._scale = inputs.mean(axis=0), np.where(inputs.std(axis=0) > 0, inputs.std(axis=0), 1.0)
        self._mean, self._spread = float(response.mean()), float(response.std()) or 1.0
        self._model = MLPRegressor(
            hidden_layer_sizes=(10, 10, 5),
            solver="lbfgs",
            max_iter=10_000,
            max_fun=100_000,
            random_state=self.seed,
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            self._model.fit((inputs - self._centre) / self._scale, (response - self._mean) / self._spread)
        return self

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""
        inputs = (unit_columns(settings) - self._centre) / self._scale
        return np.asarray(self._model.predict(inputs) * self._spread + self._mean, float)

    def importance(self, settings: Settings) -> dict[str, float]:
        """Share of the error that shuffling each factor causes on the given rows: a net has no splits to count."""
        rng, plain = np.random.default_rng(self.seed), self.predict(settings)
        losses = []
        for column in range(len(settings.factors)):
            codes = settings.codes.copy()
            codes[:, column] = rng.permutation(codes[:, column])
            shuffled = settings.with_codes(codes)
            losses.append(float(np.mean((self.predict(shuffled) - plain) ** 2)))
        total = sum(losses) or 1.0
        return {factor: loss / total for factor, loss in zip(settings.factors, losses, strict=True)}
