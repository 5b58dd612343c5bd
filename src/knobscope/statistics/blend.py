"""The mean of two models, which errs less than either where both are about equally good and err elsewhere."""

from collections.abc import Sequence
from typing import Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.explained import ExplainedTerm, explain_by_dependence
from knobscope.statistics.models import Model


class Blend:
    """Models that are fitted to the same rows and predict their mean."""

    def __init__(self, models: Sequence[Model]) -> None:
        """`models` may be fitted, or not."""
        self.models = tuple(models)
        self.name = " + ".join(model.name for model in models)

    @property
    def is_sparse(self) -> bool:
        """Whether one of them chose its terms among more than the runs could tell apart."""
        return any(getattr(model, "is_sparse", False) for model in self.models)

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Choose the form of each model and fit it."""
        for model in self.models:
            model.fit(settings, response)
        return self

    def fresh(self) -> Self:
        """Return models of the same kinds that have not been fitted."""
        return type(self)([model.fresh() for model in self.models])

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return models of the chosen forms, fitted on other rows."""
        return type(self)([model.refit(settings, response) for model in self.models])

    def predict(self, settings: Settings) -> Floats:
        """Return the mean prediction per row."""
        return np.asarray(np.mean([model.predict(settings) for model in self.models], axis=0))

    def importance(self, settings: Settings) -> dict[str, float]:
        """Return the mean share that each factor has of the importance of a model."""
        shares = dict.fromkeys(settings.factors, 0.0)
        for model in self.models:
            importance = model.importance(settings)
            total = sum(importance.values()) or 1.0
            for factor, value in importance.items():
                shares[factor] += value / total / len(self.models)
        return shares

    def explain(self, settings: Settings, response: Floats) -> list[ExplainedTerm]:
        """Return the share of the variance of the response that each factor, and each pair of strong ones, explains."""
        return explain_by_dependence(self, settings, response)
