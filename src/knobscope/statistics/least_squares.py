"""Least squares by cross products: many submodels of one design matrix at the price of a small factorisation each.

A model without some terms is a submatrix of X'X, so that backward elimination and type II tests need no new pass over
the rows. Rank-deficient designs (cells that were never sampled) are solved by pivoted Cholesky: degrees of freedom are
differences of ranks.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.design import Term

#: A pivot this small, relative to the largest one, is a linear dependence: contrasts are whole numbers.
RANK_TOLERANCE = 1e-9


def upper_tail(effect: float, degrees: int, residual: float, residual_degrees: int) -> float:
    """P value of an F test on sums of squares; 1 where nothing can be tested."""
    from scipy.special import fdtrc

    if degrees <= 0 or residual_degrees <= 0 or effect <= 0:  # below 0 by rounding
        return 1.0
    if residual <= 0:
        return 0.0
    return float(fdtrc(degrees, residual_degrees, (effect / degrees) / (residual / residual_degrees)))


def _is_singular(factor: Floats) -> bool:
    """Whether a Cholesky factor has a pivot that is a linear dependence."""
    pivots = factor.diagonal() ** 2
    return bool(pivots.min() < RANK_TOLERANCE * pivots.max())


@dataclass(frozen=True)
class Solution:
    """A fit of some terms; `columns` are those of the design, `factor` is the Cholesky factor where rank is full."""

    columns: Ints
    coefficients: Floats
    residual: float
    rank: int
    factor: Floats | None


@dataclass(frozen=True)
class Products:
    """X'X, X'y and y'y of a design with intercept (column 0), y centred; `spans` are the columns of each term."""

    gram: Floats
    moment: Floats
    total: float
    rows: int
    spans: Mapping[Term, slice]

    @classmethod
    def of(cls, matrix: Floats, response: Floats, terms: Sequence[Term], spans: Sequence[slice]) -> "Products":
        """Multiply once."""
        centred = response - response.mean()
        named = dict(zip(terms, spans, strict=True))
        return cls(matrix.T @ matrix, matrix.T @ centred, float(centred @ centred), len(response), named)

    def solve(self, terms: Iterable[Term]) -> Solution:
        """Fit some terms."""
        from scipy.linalg import lapack

        keep = self._columns(terms)
        gram, moment = self.gram[keep[:, None], keep], self.moment[keep]
        factor, failed = lapack.dpotrf(gram)
        if failed or _is_singular(factor):
            return self._solve_deficient(keep, gram, moment)
        coefficients, _ = lapack.dpotrs(factor, moment)
        return Solution(keep, coefficients, self._residual(moment, coefficients), len(keep), factor)

    def _columns(self, terms: Iterable[Term]) -> Ints:
        """Columns of the intercept and some terms, in the order of the design."""
        is_kept = np.zeros(len(self.gram), bool)
        is_kept[0] = True
        for term in terms:
            is_kept[self.spans[term]] = True
        return np.flatnonzero(is_kept)

    def _solve_deficient(self, keep: Ints, gram: Floats, moment: Floats) -> Solution:
        """Solve for a maximal set of independent columns; the others get coefficient 0."""
        from scipy.linalg import lapack

        factor, pivots, rank, _ = lapack.dpstrf(gram, tol=RANK_TOLERANCE * gram.diagonal().max())
        chosen = pivots[:rank] - 1
        # Only the upper triangle is filled; dpotrs looks at nothing else.
        coefficients = np.zeros(len(keep))
        coefficients[chosen], _ = lapack.dpotrs(factor[:rank, :rank], moment[chosen])
        return Solution(keep, coefficients, self._residual(moment, coefficients), int(rank), None)

    def _residual(self, moment: Floats, coefficients: Floats) -> float:
        return max(self.total - float(moment @ coefficients), 0.0)

    def added_to(self, term: Term, terms: Sequence[Term]) -> tuple[float, int]:
        """Sum of squares and degrees of freedom that a term adds to all other `terms`.

        With its columns last, they are the end of L^-1 X'y, where LL' = X'X.
        """
        from scipy.linalg import lapack

        own = self.spans[term]
        keep = np.append(self._columns(other for other in terms if other != term), np.arange(own.start, own.stop))
        width = own.stop - own.start
        factor, failed = lapack.dpotrf(self.gram[keep[:, None], keep])
        if failed or _is_singular(factor) or not width:
            return self.added_by([term], terms, self.solve(terms))[term]
        solved, _ = lapack.dtrtrs(factor, self.moment[keep], trans=1)
        return float((solved[-width:] ** 2).sum()), width

    def added_by(self, wanted: Iterable[Term], terms: Sequence[Term], fit: Solution) -> dict[Term, tuple[float, int]]:
        """Sum of squares and degrees of freedom that each wanted term adds to all other `terms`, whose fit is given."""
        if fit.factor is not None:
            return self._added_by_inverse(wanted, fit, fit.factor)
        added = {}
        for term in wanted:
            without = self.solve(other for other in terms if other != term)
            added[term] = (without.residual - fit.residual, fit.rank - without.rank)
        return added

    def _added_by_inverse(self, wanted: Iterable[Term], fit: Solution, factor: Floats) -> dict[Term, tuple[float, int]]:
        """Do it for full rank without solving again: b' C^-1 b, where C is a term's block of (X'X)^-1."""
        from scipy.linalg import lapack

        inverse, _ = lapack.dpotri(factor)
        added = {}
        for term in wanted:
            span = self.spans[term]
            if span.start == span.stop:  # a factor of which the rows hold one level only
                added[term] = (0.0, 0)
                continue
            start = int(fit.columns.searchsorted(span.start))
            block = slice(start, start + span.stop - span.start)
            part = fit.coefficients[block]
            # Only the upper triangle of the inverse is filled; dposv looks at nothing else.
            _, solved, _ = lapack.dposv(inverse[block, block], part)
            added[term] = (float(part @ solved), len(part))
        return added
