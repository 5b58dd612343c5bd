"""What models share that predict and have no terms of their own."""

from abc import ABC, abstractmethod
from typing import Any, Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.explained import ExplainedTerm, explain_by_dependence


class PredictingModel(ABC):
    """A model whose form is fixed: it is fitted anew for other rows, and explained by partial dependence."""

    def __init__(self, seed: int = 0) -> None:
        """`seed` fixes every random choice."""
        self.seed = seed
        self._model: Any = None

    @abstractmethod
    def fit(self, settings: Settings, response: Floats) -> Self:
        """Fit to a response per row."""

    @abstractmethod
    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""

    def fresh(self) -> Self:
        """Return a model that has not been fitted, with the same seed."""
        return type(self)(self.seed)

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return a model of the same kind, fitted on other rows."""
        return self.fresh().fit(settings, response)

    def explain(self, settings: Settings, response: Floats) -> list[ExplainedTerm]:
        """Return the share of the variance of the response that each factor, and each pair of strong ones, explains."""
        return explain_by_dependence(self, settings, response)


def count_columns(settings: Settings) -> int:
    """Return how many columns `unit_columns` has."""
    return sum(1 if settings.numbers(name) is not None else len(settings.levels_of(name)) for name in settings.factors)


def unit_columns(settings: Settings) -> Floats:
    """Return a row per run with columns from 0 to 1: an indicator per level of words, and the ranks of numbers.

    Ranks, since knobs are set by orders of magnitude and no range of values may outweigh the others.
    """
    blocks = [np.zeros((len(settings), 0))]
    for column, factor in enumerate(settings.factors):
        codes, count = settings.codes[:, column], len(settings.levels[column])
        is_number = settings.numbers(factor) is not None
        blocks.append(codes[:, None] / max(count - 1, 1) if is_number else np.eye(count)[codes])
    return np.hstack(blocks)
