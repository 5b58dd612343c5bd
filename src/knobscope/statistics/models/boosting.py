"""Gradient-boosted trees (LightGBM)."""

from typing import Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models.predicting import PredictingModel


class LightGbm(PredictingModel):
    """LightGBM with settings for some tens to some thousands of runs; one thread, so that results repeat."""

    name = "lightgbm"

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Fit to a response per row."""
        from lightgbm import LGBMRegressor

        # The defaults (20 runs per leaf, 100 trees) are for millions of rows: with 100 runs they cannot split at all.
        self._model = LGBMRegressor(
            n_estimators=300,
            learning_rate=0.06,
            num_leaves=15,
            min_child_samples=max(3, min(20, len(settings) // 40)),
            min_data_in_bin=1,
            importance_type="gain",
            random_state=self.seed,
            n_jobs=1,
            deterministic=True,
            force_row_wise=True,
            verbose=-1,
        )
        self._model.fit(settings.values(), response)
        return self

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""
        return np.asarray(self._model.booster_.predict(settings.values()), float)

    def importance(self, settings: Settings) -> dict[str, float]:
        """Share of the loss reduction that splits on each factor brought."""
        gains = self._model.feature_importances_
        return dict(zip(settings.factors, (gains / (gains.sum() or 1)).tolist(), strict=True))
