"""The forests, tree for tree those of scikit-learn."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import ExtraTreesRegressor, RandomForestRegressor

from knobscope.statistics.design import Settings
from knobscope.statistics.models.forest import ExtraTrees, RandomForest


@pytest.mark.parametrize(
    ("own", "theirs"),
    [
        (RandomForest(7), RandomForestRegressor(100, random_state=7)),
        (ExtraTrees(7), ExtraTreesRegressor(100, min_samples_leaf=2, random_state=7)),
    ],
    ids=["random_forest", "extra_trees"],
)
@pytest.mark.parametrize("scale", [1.0, 0.0], ids=["varied", "constant"])
def test_predictions_and_importance_are_those_of_scikit_learn(
    own: RandomForest, theirs: RandomForestRegressor, scale: float
) -> None:
    rng = np.random.default_rng(3)
    frame = pd.DataFrame({f"k{levels}": rng.integers(0, levels, 60) for levels in (2, 5, 9999)})
    settings = Settings.from_frame(frame, list(frame))
    response = scale * (frame.k2 + frame.k9999 / 5000 + rng.normal(0, 0.1, 60)).to_numpy()
    theirs.fit(settings.values(), response)
    own.fit(settings, response)
    asked = settings.with_codes(settings.codes[rng.permutation(60)])
    np.testing.assert_array_equal(own.predict(asked), theirs.predict(asked.values()))
    assert list(own.importance(settings).values()) == theirs.feature_importances_.tolist()
