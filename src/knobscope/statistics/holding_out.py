"""How well a model predicts rows that it was not fitted to."""

import math
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings
from knobscope.statistics.models import Model
from knobscope.statistics.models.anova import InsufficientSamplesError

FOLDS = 5
#: A held-out fifth needs a few rows before an R2 over it means anything.
MIN_TEST_ROWS = 3


def r_squared(actual: Floats, predicted: Floats) -> float:
    """Return 1 - residual / total sum of squares; minus infinity where there is nothing to explain."""
    total = float(((actual - actual.mean()) ** 2).sum())
    return 1 - float(((actual - predicted) ** 2).sum()) / total if total > 0 else float("-inf")


@dataclass(frozen=True)
class HeldOut:
    """R2 of each split; of each row the mean squared error and the mean prediction when held out (NaN: never was)."""

    scores: list[float]
    squares: Floats
    predicted: Floats


def hold_out(
    model: Model, settings: Settings, response: Floats, splits: int, rng: np.random.Generator, least: float = -math.inf
) -> HeldOut:
    """Predict the held-out fifth of random splits, up to the first one whose R2 is below the least.

    The model's form (which terms it has) is chosen anew from the rows that are not held out: terms that were chosen
    with the held-out rows in view have already seen them. Each five splits share one permutation, so that no
    configuration escapes: with independent splits one in nine is never held out in ten of them, and a stop then
    depends on whether the odd one is among those.
    """
    count = len(response)
    if count < FOLDS * MIN_TEST_ROWS:
        raise InsufficientSamplesError(f"{count} configurations, {FOLDS * MIN_TEST_ROWS} are the least")
    scores: list[float] = []
    squares, sums, times = np.zeros(count), np.zeros(count), np.zeros(count)
    while len(scores) < splits:
        order = rng.permutation(count)
        for fold in range(min(FOLDS, splits - len(scores))):
            test = order[fold::FOLDS]
            train = np.setdiff1d(order, test)
            fitted = model.fresh().fit(settings.take(train), response[train])
            predicted = fitted.predict(settings.take(test))
            scores.append(r_squared(response[test], predicted))
            squares[test] += (response[test] - predicted) ** 2
            sums[test] += predicted
            times[test] += 1
            if scores[-1] < least:
                return HeldOut(scores, squares, sums)
    times[times == 0] = np.nan
    return HeldOut(scores, squares / times, sums / times)
