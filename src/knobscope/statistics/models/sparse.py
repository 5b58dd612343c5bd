"""Terms of a model when there are more columns than runs: few knobs of hundreds matter, and those enter one by one.

At every step the term with the smallest p value enters, of all main effects and of the interactions of two or three
factors whose parts are in already. Of the models on that path the one with the least modified Bayesian information
criterion is taken (Bogdan, Ghosh and Doerge, Genetics 167, 2004): the usual criterion, and besides twice the logarithm
of the number of candidates for every term, the price of having looked at so many. Terms that pay only together are
found so, which a test at every step would miss.

Some runs of a database stall and are several times slower than anything else. That a run is off is a candidate like
any term, at the same price: a column that is 1 for this run (the mean shift model of She and Owen, Journal of the
American Statistical Association 106, 2011). So stalls and knobs are found next to each other, where neither could be
told from the rest without the other.

Of some factors it may be expected that they matter, because they did elsewhere. They have to stand out of each other,
and not of hundreds: the price of their main effects is that of a choice among those expected (prior weights, Genovese,
Roeder and Wasserman, Biometrika 93, 2006).

With hardly enough runs one wrong term early on leads the whole path astray. Where the best model leaves a good part of
the differences unexplained, more paths are walked, on which one of the strongest candidates enters at random; what a
path may not promise, the criterion still refuses.
"""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints
from knobscope.statistics.design import Settings, Term, contained_terms, design_matrix, single_terms

#: Coefficients of terms beyond this part of the runs would leave nothing to judge them by.
_MOST_COLUMNS = 1 / 3
#: Interactions of so many factors at most.
_MOST_FACTORS = 3
#: A larger part of the runs is not off: it is what the DBMS does.
_MOST_OFF = 0.1
#: Paths at most and at least, the product with the runs that their number is chosen for (with many runs the first path
#: is mostly right, and each takes longer), and the part of the differences that is explained from which on one will do.
_MOST_PATHS, _LEAST_PATHS = 60, 20
_PATHS_TIMES_RUNS = 5000
_ENOUGH = 0.95
#: On further paths one of so many strongest candidates enters, each half as likely as the one before.
_STRONGEST = 4
#: What is left of the response's sum of squares, or is added to that of a column, that counts as nothing.
_NOTHING = 1e-9
#: A column of whose sum of squares so little is left next to others is a sum of those.
_USED_UP = 1e-6


@dataclass(frozen=True)
class _Off:
    """The candidate that says of one run that it is off, whatever its settings are."""

    row: int


_Candidate = Term | _Off


def choose_sparse_terms(
    settings: Settings, response: Floats, expected: frozenset[str] = frozenset()
) -> tuple[list[Term], Bools]:
    """Return the terms that the runs confirm, main effects before interactions, and which runs they rest on.

    `response` has an entry per run. Noise columns (`Settings.with_noise_columns`) are candidates like all factors.
    `expected` are factors that mattered elsewhere.
    """
    centred, prior = response - response.mean(), _Expected(expected & set(settings.factors))
    mains = _Columns.of(settings, single_terms(settings.factors))
    chance, total = np.random.default_rng(len(response)), float(centred @ centred)
    best = min(_Path(settings, mains, centred, None, prior).walk(), key=lambda step: step.criterion)
    for _ in range(min(_MOST_PATHS, max(_LEAST_PATHS, _PATHS_TIMES_RUNS // len(response)))):
        if best.residual <= (1 - _ENOUGH) * total:
            break
        best = min(best, *_Path(settings, mains, centred, chance, prior).walk(), key=lambda step: step.criterion)
    chosen = _prune(settings, best, centred, prior)
    counts = np.ones(len(response), bool)
    counts[[candidate.row for candidate in chosen if isinstance(candidate, _Off)]] = False
    terms = [candidate for candidate in chosen if isinstance(candidate, Term)]
    return sorted(terms, key=lambda term: len(term.factors)), counts


@dataclass(frozen=True)
class _Expected:
    """Factors that mattered elsewhere, of those that there are."""

    factors: frozenset[str]

    def holds(self, candidate: _Candidate) -> bool:
        """Whether a candidate is the main effect of one of them."""
        return isinstance(candidate, Term) and len(candidate.factors) == 1 and candidate.factors[0] in self.factors

    @property
    def count(self) -> int:
        """Of how many candidates one of them stands out; at least two."""
        return max(len(self.factors), 2)

    def price(self, chosen: Sequence[_Candidate], searched: int) -> float:
        """Return what the criterion charges for terms: each was chosen of those searched, or of the expected ones."""
        return sum(2 * math.log(self.count if self.holds(candidate) else searched) for candidate in chosen)


@dataclass(frozen=True)
class _Columns:
    """Columns of terms, next to each other and padded with zeros to the widest: shape (runs, terms * widest)."""

    terms: tuple[Term, ...]
    matrix: Floats
    width: Ints  # of each term; 0 where the rows hold one level only

    @classmethod
    def of(cls, settings: Settings, terms: Sequence[Term]) -> "_Columns":
        """Build the columns of some terms, centred."""
        matrix, spans = design_matrix(settings, terms).columns(settings)
        matrix -= matrix.mean(axis=0)
        width = np.array([span.stop - span.start for span in spans], int)
        padded = np.zeros((len(settings), len(terms), max(width, default=0)))
        for number, span in enumerate(spans):
            padded[:, number, : width[number]] = matrix[:, span]
        return cls(tuple(terms), padded.reshape(len(settings), -1), width)

    def of_term(self, number: int) -> Floats:
        """Return the columns of one term."""
        widest = self.matrix.shape[1] // len(self.terms)
        return self.matrix[:, number * widest : number * widest + int(self.width[number])]


@dataclass(frozen=True)
class _Step:
    """The candidates that are in after a step of a path, what they leave, and what the criterion says of them."""

    chosen: tuple[_Candidate, ...]
    searched: int  # how many candidates there had been by then
    residual: float
    criterion: float


class _Pool:
    """Candidate terms on a path: their moments and cross products with everything that has entered taken off."""

    def __init__(self, columns: _Columns, basis: Floats, residual: Floats) -> None:
        """`basis` are the orthonormal columns that have entered, `residual` is what they leave of the response."""
        self.columns = columns
        widest = columns.matrix.shape[1] // max(len(columns.terms), 1)
        blocks = columns.matrix.reshape(len(residual), -1, widest)
        self._products = np.einsum("rti,rtj->tij", blocks, blocks)
        self._lengths = np.einsum("tii->t", self._products).copy()
        self._is_in = columns.width == 0
        self.take_off(basis, residual)

    def take_off(self, added: Floats, residual: Floats) -> None:
        """Take orthonormal columns that have entered off the candidates; `residual` is what is left of the response."""
        shared = (self.columns.matrix.T @ added).reshape(len(self.columns.terms), -1, added.shape[1])
        self._products -= shared @ shared.transpose(0, 2, 1)
        self._moment = self.columns.matrix.T @ residual

    def enter(self, number: int) -> None:
        """A term has entered and is no candidate any more."""
        self._is_in[number] = True

    def gains(self) -> Floats:
        """Return by how much each term would make the sum of squares smaller; 0 where it adds nothing."""
        widest = self._products.shape[1]
        moment = self._moment.reshape(-1, widest)
        # Padding, and columns that are sums of what has entered, have zeros here: a little on the diagonal keeps the
        # blocks solvable, and their moments, which are zero too, give nothing.
        ridge = (_NOTHING * np.maximum(self._lengths, _NOTHING))[:, None, None] * np.eye(widest)
        gains = (moment * np.linalg.solve(self._products + ridge, moment[:, :, None])[:, :, 0]).sum(axis=1)
        is_used_up = np.einsum("tii->t", self._products) <= _USED_UP * self._lengths
        return np.where(self._is_in | is_used_up, 0.0, gains)


class _Path:
    """A model that grows by one candidate at a time, from none on; with `chance` one of the strongest enters."""

    def __init__(
        self,
        settings: Settings,
        mains: _Columns,
        response: Floats,
        chance: np.random.Generator | None,
        expected: _Expected,
    ) -> None:
        """`response` is centred."""
        self._settings, self._chance, self._expected = settings, chance, expected
        self._rows, self._total = len(response), float(response @ response)
        self._basis, self._left = np.full((self._rows, 1), 1 / math.sqrt(self._rows)), response
        self._pools = [_Pool(mains, self._basis, self._left)]
        self._expected_mains = [number for number, term in enumerate(mains.terms) if expected.holds(term)]
        self._chosen: list[_Candidate] = []
        self._known: set[frozenset[str]] = set()  # factors of the interactions among the candidates

    def walk(self) -> Iterator[_Step]:
        """Yield the model after every step, until it has as many columns as it may, or nothing is left to explain."""
        while True:
            step = self._judge()
            yield step
            if step.residual <= _NOTHING * self._total or (picked := self._pick()) is None:
                return
            self._enter(*picked)

    def _judge(self) -> _Step:
        searched, residual = self._searched, float(self._left @ self._left)
        price = self._expected.price(self._chosen, searched)
        criterion = _criterion(residual, self._rows, self._basis.shape[1], price)
        return _Step(tuple(self._chosen), searched, residual, criterion)

    @property
    def _searched(self) -> int:
        return self._rows + sum(len(pool.columns.terms) for pool in self._pools)

    def _pick(self) -> tuple[_Pool | None, int] | None:
        """Return pool and number of the candidate with the smallest p value of its F test, or of one of the next.

        P values are weighted by how many candidates each stands out of. Without a pool it is the number of a run that
        is off. None: there is no room for any that would change anything.
        """
        from scipy.special import fdtrc

        off = sum(isinstance(candidate, _Off) for candidate in self._chosen)
        room = 1 + _MOST_COLUMNS * self._rows - (self._basis.shape[1] - off)
        offers: list[tuple[_Pool | None, Floats, Ints]] = [
            (pool, pool.gains(), pool.columns.width) for pool in self._pools
        ]
        if off < _MOST_OFF * self._rows:
            offers.append((None, self._gains_of_runs(), np.ones(self._rows, int)))
        gain, width = np.concatenate([pool[1] for pool in offers]), np.concatenate([pool[2] for pool in offers])
        weight = np.ones(len(gain))
        weight[self._expected_mains] = self._expected.count / self._searched
        useful = np.flatnonzero((gain > 0) & (width <= room))
        gain, width, weight = gain[useful], width[useful], weight[useful]
        degrees = np.maximum(self._rows - self._basis.shape[1] - width, 1)
        ratio = (gain / width) / (np.maximum(float(self._left @ self._left) - gain, 1e-300) / degrees)
        # Where several p values are zero in floating point, the larger ratio is the stronger one.
        order = useful[np.lexsort((-ratio, weight * fdtrc(width, degrees, ratio)))[:_STRONGEST]]
        if not len(order):
            return None
        position = int(order[0 if self._chance is None else min(int(self._chance.geometric(0.5)), len(order)) - 1])
        ends = np.cumsum([len(gains) for _, gains, _ in offers])
        which = int(np.searchsorted(ends, position, side="right"))
        return offers[which][0], position - int(ends[which]) + len(offers[which][1])

    def _gains_of_runs(self) -> Floats:
        """Return by how much it would make the sum of squares smaller that a run is off, for each run."""
        free = 1 - (self._basis**2).sum(axis=1)
        return np.where(free > _USED_UP, self._left**2 / np.maximum(free, _USED_UP), 0.0)

    def _enter(self, pool: _Pool | None, number: int) -> None:
        if pool is None:
            candidate: _Candidate = _Off(number)
            columns = np.eye(self._rows)[:, [number]]
        else:
            candidate, columns = pool.columns.terms[number], pool.columns.of_term(number)
            pool.enter(number)
        added = _orthonormal(columns, self._basis)
        self._basis = np.hstack([self._basis, added])
        self._left = self._left - added @ (added.T @ self._left)
        for each in self._pools:
            each.take_off(added, self._left)
        if isinstance(candidate, Term) and (new := _list_larger(candidate, self._chosen) - self._known):
            self._known |= new
            terms = [Term(tuple(sorted(factors, key=self._settings.factors.index))) for factors in new]
            self._pools.append(_Pool(_Columns.of(self._settings, sorted(terms)), self._basis, self._left))
        self._chosen.append(candidate)


def _orthonormal(columns: Floats, basis: Floats) -> Floats:
    """Return what columns add to an orthonormal basis, orthonormal; those that are sums of others add nothing."""
    lengths = np.linalg.norm(columns, axis=0)
    remainder = columns - basis @ (basis.T @ columns)
    remainder -= basis @ (basis.T @ remainder)  # once more, for what rounding has left
    vectors, sizes, _ = np.linalg.svd(remainder, full_matrices=False)
    return np.asarray(vectors[:, sizes**2 > _NOTHING * (lengths**2).max()])


def _prune(settings: Settings, step: _Step, response: Floats, expected: _Expected) -> list[_Candidate]:
    """Drop candidates that had entered before what explains the same better, while the criterion falls."""
    rows, chosen = len(response), list(step.chosen)
    columns: dict[_Candidate, Floats] = {
        candidate: np.eye(rows)[:, [candidate.row]] for candidate in chosen if isinstance(candidate, _Off)
    }
    for candidate in chosen:
        if isinstance(candidate, Term):
            columns[candidate] = _Columns.of(settings, [candidate]).of_term(0)

    def judge(candidates: Sequence[_Candidate]) -> float:
        matrix = np.hstack([np.ones((rows, 1)), *(columns[candidate] for candidate in candidates)])
        coefficients, _, rank, _ = np.linalg.lstsq(matrix, response, rcond=None)
        residual = response - matrix @ coefficients
        return _criterion(float(residual @ residual), rows, int(rank), expected.price(candidates, step.searched))

    best = judge(chosen)
    while True:
        contained = contained_terms(candidate for candidate in chosen if isinstance(candidate, Term))
        smaller = [
            [candidate for candidate in chosen if candidate != left_out]
            for left_out in chosen
            if left_out not in contained
        ]
        judged = [(judge(candidates), number) for number, candidates in enumerate(smaller)]
        if not judged or min(judged)[0] >= best:
            return chosen
        best, number = min(judged)
        chosen = smaller[number]


def _list_larger(term: Term, chosen: Sequence[_Candidate]) -> set[frozenset[str]]:
    """Return the factors of the interactions that have a term, then the others, and one factor more than these."""
    terms = [set(candidate.factors) for candidate in chosen if isinstance(candidate, Term)]
    mains = [factors for factors in terms if len(factors) == 1]
    own = set(term.factors)
    beside = [factors for factors in terms if len(factors) < _MOST_FACTORS] if len(own) == 1 else mains
    wanted = {frozenset(own | factors) for factors in beside if own.isdisjoint(factors)}
    return {factors for factors in wanted if len(factors) <= _MOST_FACTORS}


def _criterion(residual: float, rows: int, columns: int, price: float) -> float:
    """Return the modified criterion of a fit that leaves a sum of squares."""
    return rows * math.log(max(residual, 1e-300) / rows) + columns * math.log(rows) + price
