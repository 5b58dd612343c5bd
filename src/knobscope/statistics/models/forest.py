"""Forests of decision trees (scikit-learn): random forest, and extremely randomised trees."""

from typing import Any, Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models.predicting import PredictingModel

_LARGEST = float(np.finfo(np.float32).max)


def _single(settings: Settings) -> Floats:
    """Return the settings as far as numbers of four bytes go, in which these trees keep them."""
    return np.clip(settings.values(), -_LARGEST, _LARGEST)


class RandomForest(PredictingModel):
    """Random forest regression (Breiman 2001); 100 trees, all factors tried at a split."""

    name = "random_forest"

    def _make(self) -> Any:
        from sklearn.ensemble import RandomForestRegressor

        return RandomForestRegressor(100, random_state=self.seed, n_jobs=1)

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Fit to a response per row."""
        self._model = self._make().fit(_single(settings), response)
        return self

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""
        return np.asarray(self._model.predict(_single(settings)), float)

    def importance(self, settings: Settings) -> dict[str, float]:
        """Share of the variance reduction that splits on each factor brought (mean decrease in impurity)."""
        return dict(zip(settings.factors, self._model.feature_importances_.tolist(), strict=True))


class ExtraTrees(RandomForest):
    """Extremely randomised trees (Geurts et al. 2006): cut points are drawn, which smooths what few runs can show."""

    name = "extra_trees"

    def _make(self) -> Any:
        from sklearn.ensemble import ExtraTreesRegressor

        return ExtraTreesRegressor(100, min_samples_leaf=2, random_state=self.seed, n_jobs=1)
