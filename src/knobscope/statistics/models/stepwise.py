"""Analysis of variance by forward selection: interactions enter one by one, so that few runs suffice to find them."""

from collections.abc import Sequence
from typing import Self

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings, Term, design_matrix, pairwise_terms, single_terms
from knobscope.statistics.least_squares import Products, upper_tail
from knobscope.statistics.models.anova import SIGNIFICANCE, Anova, find_weakest, multiply

__all__ = ["StepwiseAnova"]


class StepwiseAnova(Anova):
    """Main effects; then the most significant two-way interaction enters, while there is one; then p > .05 leave.

    Backward elimination has to begin with more runs than all interactions have columns; this needs no more than the
    terms that are really there. Entering is corrected for the number of candidates (Bonferroni), or chance would enter.
    """

    def __init__(self) -> None:
        """Interactions of two factors."""
        super().__init__(2)

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Select terms and fit them. InsufficientSamplesError: not more rows than columns of the main effects."""
        terms = single_terms(settings.factors)
        multiply(design_matrix(settings, terms), settings, response)  # raises where rows are too few for these alone
        everything = pairwise_terms(settings.factors)
        matrix, spans = design_matrix(settings, everything).columns(settings)
        products = Products.of(matrix, response, everything, spans)
        while (strongest := _find_strongest(products, terms, everything)) is not None:
            terms = [term for term in everything if term in terms or term == strongest]
        while (weakest := find_weakest(products, terms)) is not None:
            terms = [term for term in terms if term != weakest]
        return self.fit_terms(settings, response, terms)

    def fresh(self) -> Self:
        """Return a model without terms."""
        return type(self)()


def _find_strongest(products: Products, terms: Sequence[Term], everything: Sequence[Term]) -> Term | None:
    """Return the interaction that is most significant beside the terms so far, if it is significant at all."""
    candidates = [term for term in everything if term not in terms]
    base = products.solve(terms)
    best, strongest = SIGNIFICANCE / max(len(candidates), 1), None
    for term in candidates:
        fit = products.solve([*terms, term])
        p_value = upper_tail(base.residual - fit.residual, fit.rank - base.rank, fit.residual, products.rows - fit.rank)
        if p_value < best:
            best, strongest = p_value, term
    return strongest
