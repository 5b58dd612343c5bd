"""How much of the response's variance each term of a model explains, for models that have no terms of their own.

The model's prediction is split as in functional analysis of variance (Hooker 2007; Hutter et al. 2014): the share of a
factor is the variance of its partial dependence, the share of a pair that of their joint partial dependence less both
single ones. Shares are of the variance of the response, as those of an analysis of variance are.
"""

from collections.abc import Iterable
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Protocol

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.design import Settings, Term

#: Important points are looked for where a knob's main effect explains this share of the variance at least.
LEAST_MAIN_SHARE = 0.1
#: Partial dependence over at most so many rows and levels (each level by its share of the rows): enough for shares.
MOST_ROWS = 100
MOST_LEVELS = 12
#: Pairs are looked at among so many factors with the largest single shares, over fewer levels.
MOST_PAIRED = 4
PAIR_LEVELS = 6
#: A share below this is none: partial dependence over a hundred rows is not exact.
SMALLEST = 0.001


@dataclass(frozen=True)
class ExplainedTerm:
    """A term with its share of the variance of the response; `p_value` where the model can test it."""

    term: Term
    explained_share: float
    p_value: float | None

    def to_json(self) -> dict[str, Any]:
        """Return the fields as they are in documents: `term` is `a` or `a:b`, `factors` the list."""
        fields = asdict(self)
        return {**fields, "term": self.term.name, "factors": list(self.term.factors)}


def list_terms(explained: Iterable[ExplainedTerm]) -> list[dict[str, Any]]:
    """Return the terms as they are in documents, the largest share first."""
    return [term.to_json() for term in sorted(explained, key=lambda term: -term.explained_share)]


class Predictor(Protocol):
    """A fitted model."""

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row."""


def explain_by_dependence(model: Predictor, settings: Settings, response: Floats) -> list[ExplainedTerm]:
    """Return the shares of all factors, and of pairs among the strongest; the arguments are the training rows."""
    total = float(np.var(response))
    if total == 0:
        return []
    rows = settings.take(np.random.default_rng(0).permutation(len(settings))[:MOST_ROWS])
    single = {factor: _variance(model, rows, settings, (factor,), MOST_LEVELS) for factor in settings.factors}
    shares = {Term((factor,)): value for factor, value in single.items()}
    strongest = set(sorted(single, key=lambda factor: -single[factor])[:MOST_PAIRED])
    for pair in combinations([factor for factor in settings.factors if factor in strongest], 2):
        joint = _variance(model, rows, settings, pair, PAIR_LEVELS)
        parts = sum(_variance(model, rows, settings, (factor,), PAIR_LEVELS) for factor in pair)
        shares[Term(pair)] = max(joint - parts, 0.0)
    return [ExplainedTerm(term, value / total, None) for term, value in shares.items() if value / total >= SMALLEST]


def _variance(model: Predictor, rows: Settings, everything: Settings, factors: tuple[str, ...], most: int) -> float:
    """Variance of the partial dependence on some factors, their levels weighted by how many rows have them."""
    columns = [everything.factors.index(factor) for factor in factors]
    drawn = [_representatives(everything.codes[:, column], most) for column in columns]
    grid = np.stack(np.meshgrid(*drawn, indexing="ij"), axis=-1).reshape(-1, len(columns))
    codes = np.tile(rows.codes, (len(grid), 1, 1))
    codes[:, :, columns] = grid[:, None, :]
    predicted = model.predict(rows.with_codes(codes.reshape(-1, codes.shape[2])))
    return float(np.var(predicted.reshape(len(grid), -1).mean(axis=1)))


def _representatives(codes: Ints, most: int) -> Ints:
    """Return level numbers that stand for a factor's distribution over the rows: evenly spread quantiles.

    A multiple of the number of levels where those are few, so that each is met as often as it occurs, nearly.
    """
    count = most if len(np.unique(codes)) > most / 2 else most * 2
    return np.asarray(np.quantile(codes, (np.arange(count) + 0.5) / count, method="nearest"), np.int64)
