"""Least squares by cross products: many submodels of one design matrix at the price of a small factorisation each.

A model without some terms is a submatrix of X'X, so that backward elimination and type II tests need no new pass over
the rows. Rank-deficient designs (cells that were never sampled) are solved by pivoted Cholesky: degrees of freedom are
differences of ranks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knobscope.select.design import Floats, Ints, Term

__all__ = ["Products", "upper_tail"]

#: A pivot this small, relative to the largest one, is a linear dependence: contrasts are whole numbers.
RANK_TOLERANCE = 1e-9


def upper_tail(effect: float, degrees: int, residual: float, residual_degrees: int) -> float:
    """P value of an F test on sums of squares; 1 where nothing can be tested."""
    from scipy.special import fdtrc

    if degrees <= 0 or residual_degrees <= 0:
        return 1.0
    if residual <= 0:
        return 0.0 if effect > 0 else 1.0
    return float(fdtrc(degrees, residual_degrees, (effect / degrees) / (residual / residual_degrees)))


@dataclass(frozen=True)
class Products:
    """X'X, X'y and y'y of a design with intercept (column 0), y centred; `places` are the columns of each term."""

    gram: Floats
    moment: Floats
    total: float
    rows: int
    places: Mapping[Term, slice]

    @classmethod
    def of(cls, matrix: Floats, response: Floats, terms: Sequence[Term], places: Sequence[slice]) -> "Products":
        """Multiply once."""
        centred = response - response.mean()
        named = dict(zip(terms, places, strict=True))
        return cls(matrix.T @ matrix, matrix.T @ centred, float(centred @ centred), len(response), named)

    def columns(self, terms: Iterable[Term]) -> Ints:
        """Return the columns of some terms, after the intercept."""
        parts = [np.arange(place.start, place.stop) for place in (self.places[term] for term in terms)]
        return np.concatenate([[0], *parts]).astype(np.int64)

    def solve(self, terms: Sequence[Term]) -> tuple[Floats, float, int]:
        """Fit some terms: (coefficients, residual sum of squares, rank)."""
        from scipy.linalg import lapack

        keep = self.columns(terms)
        gram, moment = self.gram[np.ix_(keep, keep)], self.moment[keep]
        factor, pivots, rank, _ = lapack.dpstrf(gram, tol=RANK_TOLERANCE * gram.diagonal().max())
        chosen = pivots[:rank] - 1
        # Only the upper triangle is filled; dpotrs looks at nothing else.
        solution, _ = lapack.dpotrs(factor[:rank, :rank], moment[chosen])
        coefficients = np.zeros(len(keep))
        coefficients[chosen] = solution
        return coefficients, max(self.total - float(moment[chosen] @ solution), 0.0), int(rank)

    def added_by(self, wanted: Iterable[Term], terms: Sequence[Term]) -> dict[Term, tuple[float, int]]:
        """Sum of squares and degrees of freedom that each wanted term adds to all other `terms`."""
        coefficients, residual, rank = self.solve(terms)
        if rank == len(coefficients):
            return self._added_by_inverse(wanted, terms, coefficients)
        added = {}
        for term in wanted:
            _, without, rank_without = self.solve([other for other in terms if other != term])
            added[term] = (without - residual, rank - rank_without)
        return added

    def _added_by_inverse(
        self, wanted: Iterable[Term], terms: Sequence[Term], coefficients: Floats
    ) -> dict[Term, tuple[float, int]]:
        """Do it for full rank without solving again: b' C^-1 b, where C is a term's block of (X'X)^-1."""
        from scipy.linalg import lapack

        keep = self.columns(terms)
        factor, _ = lapack.dpotrf(self.gram[np.ix_(keep, keep)])
        inverse, _ = lapack.dpotri(factor)
        added = {}
        for term in wanted:
            block = slice(*np.searchsorted(keep, [self.places[term].start, self.places[term].stop]))
            part = coefficients[block]
            # Only the upper triangle of the inverse is filled; dposv looks at nothing else.
            _, solved, _ = lapack.dposv(inverse[block, block], part)
            added[term] = (float(part @ solved), len(part))
        return added
