"""Terms of a model when there are more columns than runs: few knobs of hundreds matter, and those enter one by one.

At every step the term with the smallest p value enters, of all main effects and of the interactions between factors
that are in already. Of the models on that path the one with the least modified Bayesian information criterion is taken
(Bogdan, Ghosh and Doerge, Genetics 167, 2004): the usual criterion, and besides twice the logarithm of the number of
candidates for every term, the price of having looked at so many. Terms that pay only together are found so, which a
test at every step would miss.

Some runs of a database stall and are several times slower than anything else. A few runs far from what the model
predicts are therefore left out, and the path is walked again without them. Nothing is cut to size: residuals that are
made small for the model's sake bear out whatever it says.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Bools, Floats
from knobscope.statistics.design import Settings, Term, contained_terms, design_matrix, single_terms
from knobscope.statistics.least_squares import Products
from knobscope.statistics.models.anova import Anova

__all__ = ["choose_sparse_terms"]

#: Coefficients beyond this part of the runs would leave nothing to judge them by.
_MOST_COLUMNS = 1 / 3
#: The path ends after so many steps that have made no better model.
_PATIENCE = 8
#: Stalled runs hide small effects, and can be told from them only beside a model. So the first passes take the path as
#: far as this part of the runs has columns, whatever the criterion says.
_ROUGH_PASSES = 2
_ROUGH_COLUMNS = 0.2
#: The path is walked again without what lies far off, until its terms stay, so often at most.
_MOST_PASSES = 8
#: Robust standard deviations from which on a run lies far off; where more than this part of all does, none is left out.
_FAR = 3.5
_MOST_FAR = 0.1
#: Median absolute deviation of a standard normal distribution.
_MAD = 0.6745
#: A column whose length shrinks to this part when it is made orthogonal to others is a sum of those.
_DEPENDENT = 1e-6


@dataclass(frozen=True)
class _Blocks:
    """Columns of candidate terms, each term's orthonormal among themselves and orthogonal to all that has entered.

    `columns` has shape (terms, runs, width of the widest), with zeros where a term has fewer; `width` counts those that
    are not zero.
    """

    terms: tuple[Term, ...]
    columns: Floats
    width: Floats

    def keep(self, rows: Bools) -> "_Blocks":
        """Return some of the candidates."""
        terms = tuple(term for term, is_kept in zip(self.terms, rows, strict=True) if is_kept)
        return _Blocks(terms, self.columns[rows], self.width[rows])

    def join(self, other: "_Blocks") -> "_Blocks":
        """Return the candidates of both."""
        widest = max(self.columns.shape[2], other.columns.shape[2])
        columns = np.concatenate([_widen(self.columns, widest), _widen(other.columns, widest)])
        return _Blocks(self.terms + other.terms, columns, np.concatenate([self.width, other.width]))


def choose_sparse_terms(settings: Settings, response: Floats) -> tuple[list[Term], Bools]:
    """Return the terms that the runs bear out, main effects before interactions, and which runs they rest on.

    `response` has an entry per run. Noise columns (`Settings.with_noise_columns`) are candidates like all factors.
    """
    counts = _find_near(response - np.median(response), 1)
    terms: list[Term] = []
    for number in range(_MOST_PASSES):
        before, rows = terms, settings.take(counts)
        if number < _ROUGH_PASSES:
            terms = list(_walk(rows, response[counts], _ROUGH_COLUMNS))[-1].terms
        else:
            terms = _choose_on_path(rows, response[counts])
        model = Anova().fit_terms(rows, response[counts], terms)
        if number >= _ROUGH_PASSES and terms == before:
            break
        counts = _find_near(response - model.predict(settings), model.columns)
    return sorted(terms, key=lambda term: len(term.factors)), counts


def _find_near(residual: Floats, columns: int) -> Bools:
    """Return which residuals of a fit with so many columns lie within what most do."""
    lost = math.sqrt(len(residual) / max(len(residual) - columns, 1))
    distance = np.abs(residual - np.median(residual))
    near: Bools = distance <= _FAR * lost * float(np.median(distance)) / _MAD
    return near if near.mean() >= 1 - _MOST_FAR else np.ones(len(residual), bool)


@dataclass(frozen=True)
class _Step:
    """The first terms of a path, how many terms had been looked at by then, and what the criterion says of them."""

    terms: list[Term]
    searched: int
    criterion: float


def _choose_on_path(settings: Settings, response: Floats) -> list[Term]:
    """Return the terms of the best model on the path, without those that have become idle."""
    best: _Step | None = None
    for step in _walk(settings, response, _MOST_COLUMNS):
        if best is None or step.criterion < best.criterion:
            best = step
        elif len(step.terms) >= len(best.terms) + _PATIENCE:
            break
    assert best is not None  # noqa: S101 - a path has a first step, without terms
    return _prune(settings, best, response)


def _walk(settings: Settings, response: Floats, most_columns: float) -> Iterator[_Step]:
    """Yield the models of the path, from the one without terms to one with so many columns, as a part of the runs."""
    rows = len(response)
    candidates = _orthogonal(settings, single_terms(settings.factors), np.ones((rows, 1)))
    left, basis = response - response.mean(), np.full((rows, 1), 1 / math.sqrt(rows))
    entered: list[Term] = []
    searched = len(candidates.terms)
    while True:
        yield _Step(list(entered), searched, _criterion(left @ left, rows, basis.shape[1], len(entered), searched))
        if not candidates.terms or basis.shape[1] + candidates.width.max() > 1 + most_columns * rows:
            return
        position = _find_strongest(candidates, left, basis.shape[1])
        term, added = candidates.terms[position], candidates.columns[position]
        entered.append(term)
        basis = np.hstack([basis, added[:, : int(candidates.width[position])]])
        left = left - added @ (added.T @ left)
        others = np.arange(len(candidates.terms)) != position
        candidates = _without(candidates.keep(others), added)
        if new := _pair_up(settings, term, entered[:-1]):
            candidates = candidates.join(_orthogonal(settings, new, basis))
            searched += len(new)


def _prune(settings: Settings, step: _Step, response: Floats) -> list[Term]:
    """Drop terms that had entered before what explains the same better, while the criterion falls."""
    terms = step.terms
    matrix, spans = design_matrix(settings, terms).columns(settings)
    products = Products.of(matrix, response, terms, spans)

    def judge(kept: Sequence[Term]) -> float:
        fit = products.solve(kept)
        return _criterion(fit.residual, len(response), fit.rank, len(kept), step.searched)

    best = judge(terms)
    while True:
        contained = contained_terms(terms)
        smaller = [[one for one in terms if one != term] for term in terms if term not in contained]
        judged = [(judge(kept), number) for number, kept in enumerate(smaller)]
        if not judged or min(judged)[0] >= best:
            return terms
        best, number = min(judged)
        terms = smaller[number]


def _pair_up(settings: Settings, term: Term, others: Sequence[Term]) -> list[Term]:
    """Return the interactions of a main effect with other main effects, factors in the order of the settings."""
    pairs = [term.factors + other.factors for other in others if len(other.factors) == 1]
    return [Term(tuple(sorted(pair, key=settings.factors.index))) for pair in pairs if len(pair) == 2]


def _criterion(left: float, rows: int, columns: int, terms: int, searched: int) -> float:
    """Return the modified criterion of a fit that leaves a sum of squares; its terms were chosen of those searched."""
    return rows * math.log(max(float(left), 1e-300) / rows) + columns * math.log(rows) + 2 * terms * math.log(searched)


def _find_strongest(candidates: _Blocks, left: Floats, columns: int) -> int:
    """Return the position of the candidate with the smallest p value of its F test, `columns` being in already."""
    from scipy.special import fdtrc

    gain = ((candidates.columns.transpose(0, 2, 1) @ left) ** 2).sum(axis=1)
    degrees = len(left) - columns - candidates.width
    rest = np.maximum(float(left @ left) - gain, 1e-300)
    ratio = (gain / candidates.width) / (rest / degrees)
    p_values = fdtrc(candidates.width, degrees, ratio)
    # Where several p values are zero in floating point, the larger ratio is the stronger one.
    return int(np.lexsort((-ratio, p_values))[0])


def _orthogonal(settings: Settings, terms: Sequence[Term], basis: Floats) -> _Blocks:
    """Return the columns of terms, orthogonal to an orthogonal basis; terms that add nothing to it are left out."""
    matrix, spans = design_matrix(settings, terms).columns(settings)
    widest = max((span.stop - span.start for span in spans), default=0)
    columns = np.stack([_widen(matrix[None, :, span], widest)[0] for span in spans])
    unit = basis / np.linalg.norm(basis, axis=0)
    return _without(_Blocks(tuple(terms), columns, np.full(len(terms), float(widest))), unit)


def _without(blocks: _Blocks, added: Floats) -> _Blocks:
    """Return the blocks made orthogonal to orthonormal columns (or zeros) that have entered, and orthonormal again."""
    before = np.linalg.norm(blocks.columns, axis=1)
    columns = blocks.columns - added @ (added.T @ blocks.columns)
    width = np.zeros(len(columns))
    kept = np.zeros_like(columns)
    for number in range(columns.shape[2]):
        one = columns[:, :, number]
        one = one - (kept @ (kept.transpose(0, 2, 1) @ one[:, :, None]))[:, :, 0]
        length = np.linalg.norm(one, axis=1)
        is_new = length > _DEPENDENT * np.maximum(before[:, number], 1e-300)
        at = width.astype(int)
        rows = np.flatnonzero(is_new)
        kept[rows, :, at[rows]] = one[rows] / length[rows, None]
        width += is_new
    return _Blocks(blocks.terms, kept, width).keep(width > 0)


def _widen(columns: Floats, width: int) -> Floats:
    """Return blocks with columns of zeros at the end, up to a width."""
    missing = width - columns.shape[2]  # as a rule 0, and np.pad takes long to find that out
    return np.concatenate([columns, np.zeros((*columns.shape[:2], missing))], axis=2) if missing else columns
