"""Analysis of variance with categorical factors: main effects, two-way interactions, backward elimination."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import (
    DesignMatrix,
    Settings,
    Term,
    contained_terms,
    design_matrix,
    pairwise_terms,
    single_terms,
)
from knobscope.statistics.explained import ExplainedTerm
from knobscope.statistics.least_squares import Products, upper_tail

SIGNIFICANCE = 0.05


class InsufficientSamplesError(Exception):
    """Fewer runs than columns of the model: nothing can be said with it, more runs are needed."""


@dataclass(frozen=True)
class TermTest:
    """F test of one term: sum of squares, its degrees of freedom, share of the total sum of squares."""

    term: Term
    sum_of_squares: float
    degrees: int
    explained_share: float
    p_value: float


class Anova:
    """A linear model of categorical factors whose terms with p > .05 are dropped, the least significant first.

    A main effect stays as long as an interaction with it does (hierarchy). Source: Hui et al., "On the Feasibility and
    Benefits of Extensive Evaluation", SIGMOD 2024, section 4.
    """

    name = "anova"
    is_sparse = False  # whether terms were chosen of more than the runs could tell apart

    def __init__(self, order: int = 1) -> None:
        """`order` 1 is main effects, 2 adds all two-way interactions."""
        self.order = order
        self.terms: tuple[Term, ...] = ()
        self._design: DesignMatrix | None = None
        self._mean = 0.0

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Select terms by backward elimination and fit them.

        InsufficientSamplesError: not more rows than columns of the model before anything is dropped.
        """
        terms = pairwise_terms(settings.factors) if self.order == 2 else single_terms(settings.factors)
        products = multiply(design_matrix(settings, terms), settings, response)
        while (weakest := find_weakest(products, terms)) is not None:
            terms = [term for term in terms if term != weakest]
        return self.fit_terms(settings, response, terms)

    def fresh(self) -> Self:
        """Return a model of the same order without terms."""
        return type(self)(self.order)

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return a model with the same terms, and one per noise column, fitted on other rows. Errors as in fit."""
        noise = [Term((factor,)) for factor in settings.factors[len(settings.knobs) :]]
        return self.fresh().fit_terms(settings, response, [*self.terms, *noise])

    def fit_terms(self, settings: Settings, response: Floats, terms: Sequence[Term]) -> Self:
        """Fit exactly these terms. InsufficientSamplesError: not more rows than columns."""
        self.terms = tuple(terms)
        self._design = design_matrix(settings, terms)
        self._products = multiply(self._design, settings, response)
        self._mean = float(response.mean())
        self._solution = self._products.solve(terms)
        return self

    def predict(self, settings: Settings) -> Floats:
        """Return a prediction per row; levels that training did not hold count as average."""
        if self._design is None:
            raise RuntimeError("predict before fit")
        matrix, _ = self._design.columns(settings)
        return np.asarray(matrix @ self._solution.coefficients + self._mean)

    @property
    def coefficients(self) -> dict[Term, Floats]:
        """Coefficients per kept term, on sum-to-zero contrasts: an axis per factor, its last seen level left out.

        The intercept is under the term without factors.
        """
        if self._design is None:
            raise RuntimeError("coefficients before fit")
        coefficients, end = {Term(()): self._solution.coefficients[:1] + self._mean}, 1
        for term in self.terms:
            shape = [self._design.contrasts[factor].shape[1] for factor in term.factors]
            start, end = end, end + math.prod(shape)
            coefficients[term] = self._solution.coefficients[start:end].reshape(shape)
        return coefficients

    @property
    def columns(self) -> int:
        """Number of coefficients, the intercept included."""
        return len(self._solution.coefficients)

    def tests(self) -> list[TermTest]:
        """Type II tests of the kept terms: each one given all others that do not contain it."""
        products, total, fit = self._products, self._products.total, self._solution
        contained = contained_terms(self.terms)
        added = products.added_by([term for term in self.terms if term not in contained], self.terms, fit)
        for term in contained.intersection(self.terms):
            added[term] = products.added_to(term, [other for other in self.terms if not other.contains(term)])
        tests = []
        for term in self.terms:
            effect, degrees = added[term]
            p_value = upper_tail(effect, degrees, fit.residual, products.rows - fit.rank)
            tests.append(TermTest(term, effect, degrees, effect / total if total else 0.0, p_value))
        return tests

    def explain(self, settings: Settings, response: Floats) -> list[ExplainedTerm]:
        """Return share of the total sum of squares, and p, of every kept term (type II)."""
        return [ExplainedTerm(test.term, test.explained_share, test.p_value) for test in self.tests()]

    def importance(self, settings: Settings) -> dict[str, float]:
        """Total effect of each factor: the explained shares of all terms it is part of."""
        shares = dict.fromkeys(settings.factors, 0.0)
        for test in self.tests():
            for factor in test.term.factors:
                shares[factor] += test.explained_share
        return shares


def multiply(design: DesignMatrix, settings: Settings, response: Floats) -> Products:
    """Cross products of a design on some rows. InsufficientSamplesError: not more rows than columns."""
    matrix, spans = design.columns(settings)
    if len(settings) <= matrix.shape[1]:
        raise InsufficientSamplesError(f"{len(settings)} runs for {matrix.shape[1]} columns")
    return Products.of(matrix, response, design.terms, spans)


def find_weakest(products: Products, terms: Sequence[Term]) -> Term | None:
    """Return the term that is dropped next: the largest p > .05 among those that no kept interaction needs."""
    contained = contained_terms(terms)
    removable = [term for term in terms if term not in contained]
    fit = products.solve(terms)
    added = products.added_by(removable, terms, fit)
    tests = {term: upper_tail(*added[term], fit.residual, products.rows - fit.rank) for term in removable}
    weakest = max(tests, key=lambda term: tests[term], default=None)
    return weakest if weakest is not None and tests[weakest] > SIGNIFICANCE else None
