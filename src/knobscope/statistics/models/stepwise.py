"""Analysis of variance by forward selection: interactions enter one by one, so that few runs suffice to find them."""

from collections.abc import Sequence
from typing import Self

from knobscope.statistics.arrays import Floats
from knobscope.statistics.design import Settings, Term, design_matrix, pairwise_terms, single_terms
from knobscope.statistics.least_squares import Products, upper_tail
from knobscope.statistics.models.anova import SIGNIFICANCE, Anova, find_weakest
from knobscope.statistics.models.sparse import choose_sparse_terms

#: Cross products of so many columns take 128 MB.
_MOST_COLUMNS = 4000


class StepwiseAnova(Anova):
    """Main effects; then the most significant two-way interaction enters, while there is one; then p > .05 leave.

    Backward elimination has to begin with more runs than all interactions have columns; this needs no more than the
    terms that are really there. Entering is corrected for the number of candidates (Bonferroni), or chance would enter.

    Where the runs are fewer than the columns of the main effects, or the interactions too many to look at, main effects
    enter one by one as well (`knobscope.statistics.models.sparse`).
    """

    def __init__(self, expected: frozenset[str] = frozenset()) -> None:
        """Interactions of two factors; where few terms enter of many, some factors are expected to be among them."""
        super().__init__(2)
        self._expected = expected

    def fit(self, settings: Settings, response: Floats) -> Self:
        """Select terms and fit them."""
        terms = single_terms(settings.factors)
        widths = [span.stop - span.start for span in design_matrix(settings, terms).columns(settings)[1]]
        mains, pairs = sum(widths), (sum(widths) ** 2 - sum(width**2 for width in widths)) // 2
        self.is_sparse = len(settings) <= 1 + mains or mains + pairs > _MOST_COLUMNS
        if self.is_sparse:
            return self._fit_sparse(settings, response)
        everything = pairwise_terms(settings.factors)
        matrix, spans = design_matrix(settings, everything).columns(settings)
        products = Products.of(matrix, response, everything, spans)
        while (strongest := _find_strongest(products, terms, everything)) is not None:
            terms = [term for term in everything if term in terms or term == strongest]
        while (weakest := find_weakest(products, terms)) is not None:
            terms = [term for term in terms if term != weakest]
        return self.fit_terms(settings, response, terms)

    def _fit_sparse(self, settings: Settings, response: Floats) -> Self:
        terms, rows = choose_sparse_terms(settings, response, self._expected)
        return self.fit_terms(settings.take(rows), response[rows], terms)

    def fresh(self) -> Self:
        """Return a model without terms."""
        return type(self)(self._expected)

    def refit(self, settings: Settings, response: Floats) -> Self:
        """Return a model fitted on other rows: of the same terms, or of terms chosen anew where few are chosen of many.

        Those that were chosen of hundreds with all rows in view would look good on any of these rows.
        """
        return self.fresh().fit(settings, response) if self.is_sparse else super().refit(settings, response)


def _find_strongest(products: Products, terms: Sequence[Term], everything: Sequence[Term]) -> Term | None:
    """Return the interaction that is most significant in addition to the terms so far, if it is significant at all."""
    candidates = [term for term in everything if term not in terms]
    base = products.solve(terms)
    best, strongest = SIGNIFICANCE / max(len(candidates), 1), None
    for term in candidates:
        fit = products.solve([*terms, term])
        p_value = upper_tail(base.residual - fit.residual, fit.rank - base.rank, fit.residual, products.rows - fit.rank)
        if p_value < best:
            best, strongest = p_value, term
    return strongest
