"""Forests of decision trees (of scikit-learn): random forest, and extremely randomised trees."""

from typing import Any, Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.explained import ExplainedTerm, explain_by_dependence

__all__ = ["ExtraTrees", "RandomForest"]

_TREES = 100


class RandomForest:
    """Random forest regression (Breiman 2001); 100 trees, all factors tried at a split.

    It is the forest of scikit-learn, tree for tree. That one spends more time on copying, checking and locking for each
    tree than on its splits when there are some hundred rows, and a ranking fits and asks thousands of trees.
    """

    name = "random_forest"

    def __init__(self, seed: int = 0) -> None:
        """`seed` fixes every random choice."""
        self.seed = seed
        self._trees: list[Any] = []

    def _grow(self, seed: int, values: Any, response: Floats) -> Any:
        """Return a tree, fitted to rows that are drawn with replacement."""
        from sklearn.tree import DecisionTreeRegressor

        drawn = np.random.RandomState(seed).randint(0, len(values), len(values))
        weights = np.bincount(drawn, minlength=len(values)).astype(float)
        return DecisionTreeRegressor(random_state=seed).fit(values, response, weights, check_input=False)

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Fit to a response per row."""
        from sklearn import config_context

        seeds, values = np.random.RandomState(self.seed), settings.values().astype(np.float32)
        exact = np.ascontiguousarray(response, float)
        with config_context(skip_parameter_validation=True):  # the same parameters a hundred times
            self._trees = [self._grow(seeds.randint(np.iinfo(np.int32).max), values, exact) for _ in range(_TREES)]
        return self

    def fresh(self) -> Self:
        """Return a model that has not been fitted, with the same seed."""
        return type(self)(self.seed)

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return a model of the same kind, fitted on other rows."""
        return self.fresh().fit(settings, response)

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""
        values, total = settings.values().astype(np.float32), np.zeros(len(settings))
        for tree in self._trees:
            total += tree.tree_.predict(values)[:, 0]
        return total / len(self._trees)

    def explain(self, settings: Settings, response: Floats) -> list[ExplainedTerm]:
        """Return the share of the variance of the response that each factor, and each pair of strong ones, explains."""
        return explain_by_dependence(self, settings, response)

    def importance(self, settings: Settings) -> dict[str, float]:
        """Share of the variance reduction that splits on each factor brought (mean decrease in impurity)."""
        split = [tree.feature_importances_ for tree in self._trees if tree.tree_.node_count > 1]
        mean = np.mean(split, axis=0) if split else np.zeros(len(settings.factors))
        return dict(zip(settings.factors, (mean / (mean.sum() or 1)).tolist(), strict=True))


class ExtraTrees(RandomForest):
    """Extremely randomised trees (Geurts et al. 2006): cut points are drawn, which smooths what few runs can show."""

    name = "extra_trees"

    def _grow(self, seed: int, values: Any, response: Floats) -> Any:
        """Return a tree, fitted to all rows."""
        from sklearn.tree import ExtraTreeRegressor

        return ExtraTreeRegressor(min_samples_leaf=2, random_state=seed).fit(values, response, check_input=False)
