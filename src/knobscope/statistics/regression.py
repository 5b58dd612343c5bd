"""Least squares for blocks: the effect of every configuration against the sentinel, with nuisance terms absorbed.

The model is that of the randomised complete block design (R. A. Fisher): response = block + configuration + noise.
There may be thousands of configurations and tens of thousands of runs, so their dummy variables are never built: the
Frisch-Waugh-Lovell theorem lets the nuisance columns be fitted on deviations from the configuration means, and gives
the same numbers as the full regression. Nor are those of the blocks, of which a run has one: only cross products are as
large as their number.

Runs of one configuration in one block (a cell) may have a deviation in common: what the block does to this
configuration and to no other. With a known share of that in the variance of a run (`Cells`) the fit is one of
generalised least squares, on deviations from a part of the cell's mean.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from knobscope.statistics.arrays import Floats, Ints, average_groups
from knobscope.statistics.variances import moderate_variances

#: Compared with the size of the response, what is smaller than this is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Nuisance:
    """Nuisance columns, of which each run has few: `values` in the `columns` of these numbers, and 0 in all others.

    Both are of shape (n, few): a block has a level, and may have a line and a bend, all 0 outside of it. Runs of a cell
    have the same columns, in the same places.
    """

    columns: Ints
    values: Floats
    count: int  # of all columns

    @classmethod
    def of(cls, matrix: Floats) -> "Nuisance":
        """Return the columns of a whole matrix, shape (n, count)."""
        return cls(np.broadcast_to(np.arange(matrix.shape[1]), matrix.shape), matrix, matrix.shape[1])

    @classmethod
    def join(cls, parts: Sequence[tuple[Ints, Floats | int, int]]) -> "Nuisance":
        """Join parts of which a run has one column at most.

        Each is the column's number within the part (-1: none), the run's value in it, and the number of columns.
        """
        starts = np.cumsum([0, *(count for _, _, count in parts)])
        columns, values = np.zeros((2, len(parts[0][0]), len(parts)))
        for place, (number, value, _) in enumerate(parts):
            columns[:, place] = np.where(number < 0, 0, starts[place] + number)
            values[:, place] = np.where(number < 0, 0.0, value)
        some = slice(len(parts) if starts[-1] else 0)
        return cls(columns.astype(np.int64)[:, some], values[:, some], int(starts[-1]))

    @classmethod
    def levels(cls, code: Ints) -> "Nuisance":
        """Return a column per code but the first, 1 in its runs."""
        return cls.join([number_levels(code)])

    def times(self, slopes: Floats) -> Floats:
        """Return the product with a vector, shape (n,)."""
        return np.asarray((self.values * slopes[self.columns]).sum(axis=1))

    def sums(self, weights: Floats, group: Ints, groups: int) -> Floats:
        """Return the weighted sum of each column over the runs of each group, shape (groups, count)."""
        cells = group[:, None] * self.count + self.columns
        summed = np.bincount(cells.ravel(), (weights[:, None] * self.values).ravel(), minlength=groups * self.count)
        return summed.reshape(groups, self.count).astype(np.float64)

    def products(self) -> Floats:
        """Return the cross products of all columns, shape (count, count)."""
        pairs = self.columns[:, :, None] * self.count + self.columns[:, None, :]
        values = self.values[:, :, None] * self.values[:, None, :]
        summed = np.bincount(pairs.ravel(), values.ravel(), minlength=self.count**2)
        return summed.reshape(self.count, self.count).astype(np.float64)

    def quadratic_forms(self, matrix: Floats) -> Floats:
        """Return x' A x of each run's row x, shape (n,)."""
        entries = matrix[self.columns[:, :, None], self.columns[:, None, :]]
        return np.asarray(np.einsum("na,nab,nb->n", self.values, entries, self.values))


def number_levels(code: Ints) -> tuple[Ints, int, int]:
    """Return the part of `Nuisance.join` that has a column per code but the first, 1 in its runs."""
    present = np.unique(code)
    return np.searchsorted(present, code) - 1, 1, max(len(present) - 1, 0)


@dataclass(frozen=True)
class Cells:
    """Runs that share a deviation: code of the cell of each run (n,), and the deviation's share of a run's variance."""

    code: Ints
    share: float

    def whiten(self, columns: Floats) -> Floats:
        """Return columns (n, any) whose rows are independent, with the variance of a run."""
        part = 1 - np.sqrt(1 - self.share) * self.scale
        means = average_groups(columns, self.code)
        return np.asarray((columns - part[:, None] * means) / np.sqrt(1 - self.share))

    @property
    def scale(self) -> Floats:
        """What whitening makes of a 1 that all runs of the cell have."""
        return np.asarray(1 / np.sqrt(1 - self.share + self.share * self._sizes))

    @property
    def log_determinant(self) -> float:
        """Logarithm of the determinant of the runs' correlations."""
        sizes = self._sizes
        return float(((1 - 1 / sizes) * np.log1p(-self.share) - 2 / sizes * np.log(self.scale)).sum())

    @property
    def _sizes(self) -> Ints:
        return np.bincount(self.code)[self.code]


@dataclass(frozen=True)
class BlockFit:
    """Effects of configurations 1, 2, ... against 0, shape (configurations - 1,), and of the nuisance terms."""

    estimates: Floats
    errors: Floats
    nuisance: Floats
    noise: float  # residual standard deviation, of a single run, with what it shares with others of its cell
    degrees: int
    own_squares: Floats  # residual sum of squares of each configuration, 0 included, and its degrees of freedom
    own_degrees: Floats
    levels: Floats  # 1 / independent runs of each configuration, the part of the leverage that is its own
    nuisance_means: Floats  # mean of each nuisance column in the runs of each configuration
    inverse: Floats  # inverse of the nuisance columns' cross products within configurations


@dataclass(frozen=True)
class BlockDesign:
    """All of a fit that does not depend on the response: several metrics of the same runs share it."""

    configuration: Ints
    nuisance: Nuisance  # white, as are all figures below
    cells: Cells | None
    scale: Floats  # what whitening makes of a 1 that all runs of a configuration have
    counts: Floats  # independent runs of each configuration; NaN without any
    means: Floats  # mean of each nuisance column in the runs of each configuration
    gram: Floats  # cross products of the nuisance columns within configurations ...
    inverse: Floats  # ... and their inverse
    log_determinant: float  # logarithm of the determinant of the cross products, of what is determined
    degrees: int
    own_degrees: Floats

    @classmethod
    def of(
        cls, configuration: Ints, nuisance: Nuisance, configurations: int, cells: Cells | None = None
    ) -> "BlockDesign":
        """Eliminate the configurations (n,) from the nuisance columns; without cells all runs are independent."""
        if cells is not None and not cells.share > 0:
            cells = None
        scale = np.ones(len(configuration)) if cells is None else cells.scale
        if cells is not None:
            nuisance = replace(nuisance, values=cells.whiten(nuisance.values))
        squares = np.bincount(configuration, scale**2, minlength=configurations).astype(float)
        sums = nuisance.sums(scale, configuration, configurations)
        has_runs = squares > 0
        means = np.divide(sums, squares[:, None], out=np.full(sums.shape, np.nan), where=has_runs[:, None])
        gram = nuisance.products() - sums[has_runs].T @ means[has_runs]
        sizes, vectors = np.linalg.eigh(gram)
        determined = sizes > _ROUNDING * sizes.max(initial=0)
        sizes, vectors = sizes[determined], vectors[:, determined]
        inverse = (vectors / sizes) @ vectors.T
        degrees = len(configuration) - int(has_runs.sum()) - len(sizes)
        own = np.bincount(configuration, 1 - nuisance.quadratic_forms(inverse), minlength=configurations)
        own_degrees = np.where(has_runs, own - 1 + squares * _quadratic_forms(np.nan_to_num(means), inverse), 0.0)
        counts = np.where(has_runs, squares, np.nan)
        log_determinant = float(np.log(sizes).sum())
        return cls(
            *(configuration, nuisance, cells, scale, counts, means, gram, inverse),
            *(log_determinant, degrees, own_degrees),
        )

    def fit(self, response: Floats) -> BlockFit:
        """Fit a response (n,)."""
        size = float(np.abs(response).max(initial=0.0)) * _ROUNDING
        if self.cells is not None:
            response = self.cells.whiten(response[:, None])[:, 0]
        configuration, scale, configurations = self.configuration, self.scale, len(self.counts)
        means = np.bincount(configuration, scale * response, minlength=configurations) / self.counts
        deviation = response - scale * means[configuration]
        # Deviations add up to 0 in each configuration, so the columns need not be taken within configurations, too.
        slopes = self.inverse @ self.nuisance.sums(deviation, np.zeros_like(configuration), 1)[0]
        explained = self.means @ slopes
        residuals = deviation - self.nuisance.times(slopes) + scale * explained[configuration]
        noise = float(np.sqrt(residuals @ residuals / self.degrees)) if self.degrees > 0 else float("nan")
        noise = 0.0 if noise < size else noise
        levels = means - explained
        shared = _quadratic_forms(self.means[1:] - self.means[0], self.inverse)
        leverage = 1 / self.counts[1:] + 1 / self.counts[0] + shared
        estimates = levels[1:] - levels[0]
        estimates[np.abs(estimates) < size] = 0.0
        squares = np.where(np.abs(residuals) < size, 0.0, residuals) ** 2
        return BlockFit(
            estimates,
            noise * np.sqrt(leverage),
            slopes,
            noise,
            self.degrees,
            np.bincount(configuration, squares, minlength=configurations).astype(np.float64),
            self.own_degrees,
            1 / self.counts,
            self.means,
            self.inverse,
        )


def fit_blocks(
    response: Floats, configuration: Ints, nuisance: Nuisance, configurations: int, cells: Cells | None = None
) -> BlockFit:
    """Regress response (n,) on configuration codes (n,), 0 being the sentinel, and on nuisance columns.

    The nuisance columns hold no intercept. Configurations without a run get NaN; so do errors without residual degrees
    of freedom. Without cells all runs are independent.
    """
    return BlockDesign.of(configuration, nuisance, configurations, cells).fit(response)


def contrast_errors(fit: BlockFit, parts: Ints, signs: Floats) -> tuple[Floats, Floats]:
    """Return standard errors and degrees of freedom of contrasts of configurations that differ in noise.

    Each configuration has a variance of its own, moderated by that of the others; degrees of freedom are Welch and
    Satterthwaite's.

    A contrast is the sum of its configurations, `parts` (contrasts, some), each times its sign (some,); signs add up
    to 0. The results are of shape (contrasts,), NaN where a configuration of the contrast has no run.
    """
    variances, degrees = moderate_variances(fit.own_squares, fit.own_degrees)
    shift = np.einsum("ijk,j->ik", fit.nuisance_means[parts], signs)
    shared = fit.noise**2 * _quadratic_forms(shift, fit.inverse)
    variance = np.column_stack([signs**2 * variances[parts] * fit.levels[parts], shared])
    of_variance = np.column_stack([degrees[parts], np.full(len(parts), fit.degrees)])
    total = variance.sum(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        joint = total**2 / (variance**2 / np.maximum(of_variance, 1e-9)).sum(axis=1)
    return np.sqrt(total), np.where(total > 0, np.minimum(joint, fit.degrees), fit.degrees)


def _quadratic_forms(rows: Floats, matrix: Floats) -> Floats:
    """Return x' A x of each row x: two products, where one einsum over three arrays is many times slower."""
    return np.asarray(np.einsum("ij,ij->i", rows @ matrix, rows))


def t_probability(estimates: Floats, errors: Floats, degrees: Floats | int) -> Floats:
    """Return the two-sided p values; an effect of exactly 0 has 1, a missing one NaN."""
    from scipy.special import stdtr  # scipy.stats takes most of a second to import, and longer for the same numbers

    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(degrees, -np.abs(estimates) / errors)
    return np.where((estimates == 0) & np.isfinite(errors), 1.0, p)


def t_interval(estimates: Floats, errors: Floats, degrees: Floats | int) -> tuple[Floats, Floats]:
    """Return lower and upper ends of the 95 % intervals."""
    from scipy.special import stdtrit

    half = stdtrit(degrees, 0.975) * errors
    return estimates - half, estimates + half


def adjust_for_fdr(p_values: Floats) -> Floats:
    """Return q values (Benjamini and Hochberg, 1995) over all p values that are there; NaN stays NaN."""
    finite = np.flatnonzero(np.isfinite(p_values))
    q_values = np.full(len(p_values), np.nan)
    order = finite[np.argsort(p_values[finite])]
    bounds = p_values[order] * (len(order) / np.arange(1, len(order) + 1))
    q_values[order] = np.minimum(np.minimum.accumulate(bounds[::-1])[::-1], 1.0)
    return q_values
