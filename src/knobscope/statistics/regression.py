"""Least squares for blocks: the effect of every configuration against the sentinel, with nuisance terms absorbed.

The model is that of the randomised complete block design (R. A. Fisher): response = block + configuration + noise.
There may be thousands of configurations and tens of thousands of runs, so their dummy variables are never built: the
Frisch-Waugh-Lovell theorem lets the few nuisance columns be fitted on deviations from the configuration means, and
gives the same numbers as the full regression.

Runs of one configuration in one block (a cell) may have a deviation in common: what the block does to this
configuration and to no other. With a known share of that in the variance of a run (`Cells`) the fit is one of
generalised least squares, on deviations from a part of the cell's mean.
"""

from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Floats, Ints
from knobscope.statistics.variances import moderate_variances

__all__ = [
    "BlockFit",
    "Cells",
    "adjust_for_fdr",
    "contrast_errors",
    "fit_blocks",
    "t_interval",
    "t_probability",
]


#: Compared with the size of the response, what is smaller than this is rounding.
_ROUNDING = 1e-12


@dataclass(frozen=True)
class Cells:
    """Runs that share a deviation: code of the cell of each run (n,), and the deviation's share of a run's variance."""

    code: Ints
    share: float

    def whiten(self, columns: Floats) -> Floats:
        """Return columns (n, any) whose rows are independent, with the variance of a run."""
        counts = np.bincount(self.code).astype(float)
        means = _group_means(columns, self.code, np.maximum(counts, 1))
        part = 1 - np.sqrt(1 - self.share) * self.scale
        return np.asarray((columns - part[:, None] * means[self.code]) / np.sqrt(1 - self.share))

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
    nuisance_errors: Floats
    noise: float  # residual standard deviation, of a single run, with what it shares with others of its cell
    degrees: int
    own_squares: Floats  # residual sum of squares of each configuration, 0 included, and its degrees of freedom
    own_degrees: Floats
    levels: Floats  # 1 / independent runs of each configuration, the part of the leverage that is its own
    nuisance_means: Floats  # mean of each nuisance column in the runs of each configuration
    inverse: Floats  # inverse of the nuisance columns' cross products within configurations


def fit_blocks(
    response: Floats, configuration: Ints, nuisance: Floats, configurations: int, cells: Cells | None = None
) -> BlockFit:
    """Regress response (n,) on configuration codes (n,), 0 being the sentinel, and on nuisance columns (n, q).

    The nuisance columns hold no intercept. Configurations without a run get NaN; so do errors without residual degrees
    of freedom. Without cells all runs are independent.
    """
    size = float(np.abs(response).max(initial=0.0)) * _ROUNDING
    scale = np.ones(len(response))
    if cells is not None and cells.share > 0:
        scale = cells.scale
        columns = cells.whiten(np.column_stack([response, nuisance]))
        response, nuisance = columns[:, 0], columns[:, 1:]
    counts = np.bincount(configuration, scale**2, minlength=configurations).astype(float)
    counts[counts == 0] = np.nan
    means = _group_means((scale * response)[:, None], configuration, counts)[:, 0]
    nuisance_means = _group_means(scale[:, None] * nuisance, configuration, counts)
    within = nuisance - scale[:, None] * nuisance_means[configuration]
    deviation = response - scale * means[configuration]
    gram = within.T @ within
    inverse = np.linalg.pinv(gram, hermitian=True).astype(np.float64)
    slopes = inverse @ (within.T @ deviation)
    residuals = deviation - within @ slopes
    present = int(np.isfinite(counts).sum())
    degrees = len(response) - present - (int(np.linalg.matrix_rank(gram, hermitian=True)) if gram.size else 0)
    noise = float(np.sqrt(residuals @ residuals / degrees)) if degrees > 0 else float("nan")
    noise = 0.0 if noise < size else noise
    levels = means - nuisance_means @ slopes
    shift = nuisance_means[1:] - nuisance_means[0]
    shared = _quadratic_forms(shift, inverse)
    leverage = 1 / counts[1:] + 1 / counts[0] + shared
    of_runs = 1 - scale**2 / counts[configuration] - _quadratic_forms(within, inverse)
    estimates = levels[1:] - levels[0]
    estimates[np.abs(estimates) < size] = 0.0
    squares = np.where(np.abs(residuals) < size, 0.0, residuals) ** 2
    return BlockFit(
        estimates,
        noise * np.sqrt(leverage),
        slopes,
        noise * np.sqrt(np.diag(inverse)),
        noise,
        degrees,
        np.bincount(configuration, squares, minlength=configurations).astype(np.float64),
        np.bincount(configuration, of_runs, minlength=configurations).astype(np.float64),
        1 / counts,
        nuisance_means,
        inverse,
    )


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


def _group_means(columns: Floats, group: Ints, counts: Floats) -> Floats:
    sums = [np.bincount(group, column, minlength=len(counts)) for column in columns.T]
    return np.column_stack(sums) / counts[:, None] if sums else np.zeros((len(counts), 0))


def t_probability(estimates: Floats, errors: Floats, degrees: Floats | int) -> Floats:
    """Return the two-sided p values; an effect of exactly 0 has 1, a missing one NaN."""
    from scipy.special import stdtr  # scipy.stats takes most of a second to import, and longer for the same numbers

    with np.errstate(divide="ignore", invalid="ignore"):
        p = 2 * stdtr(degrees, -np.abs(estimates) / errors)
    return np.where((estimates == 0) & np.isfinite(errors), 1.0, p)


def t_interval(
    estimates: Floats, errors: Floats, degrees: Floats | int, confidence: float = 0.95
) -> tuple[Floats, Floats]:
    """Return lower and upper ends of the confidence intervals."""
    from scipy.special import stdtrit

    half = stdtrit(degrees, (1 + confidence) / 2) * errors
    return estimates - half, estimates + half


def adjust_for_fdr(p_values: Floats) -> Floats:
    """Return q values (Benjamini and Hochberg, 1995) over all p values that are there; NaN stays NaN."""
    finite = np.flatnonzero(np.isfinite(p_values))
    q_values = np.full(len(p_values), np.nan)
    order = finite[np.argsort(p_values[finite])]
    bounds = p_values[order] * (len(order) / np.arange(1, len(order) + 1))
    q_values[order] = np.minimum(np.minimum.accumulate(bounds[::-1])[::-1], 1.0)
    return q_values
