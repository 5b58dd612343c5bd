"""How much of a run's variance all runs of its configuration in one block share: the interaction of the two.

A block may do something to one configuration alone. Runs of a configuration in one block then say little of another
block, and its mean is no more precise for having more of them there. The share is that of a mixed model (restricted
likelihood; H. D. Patterson and R. Thompson, Biometrika 58, 1971), with a variance of its own for each configuration as
in `variances`, so that a few noisy configurations do not count as interaction. The few repeats of a block tell little
of the share, so that it is averaged out: what it leaves uncertain takes degrees of freedom from the errors.
"""

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from knobscope.statistics.regression import BlockDesign, BlockFit, Cells, Nuisance, contrast_errors
from knobscope.statistics.variances import average_variances, log_evidence

if TYPE_CHECKING:
    from knobscope.statistics.arrays import Floats, Ints

#: How many times the variance of a run within its block the shared one may be, evenly in the logarithm. Beforehand no
#: share at all is as likely as all others together. With twenty steps instead of six the width of an interval changes
#: by 1.4 % (standard deviation), in 2.4 times the time.
_RATIOS = np.append(0.0, 0.15 * 2.74 ** np.arange(6))
_SHARES = _RATIOS / (1 + _RATIOS)
_PRIOR = np.append(1.0, np.full(6, 1 / 6))
_LEAST_WEIGHT = 5e-3


@dataclass(frozen=True)
class MixedFit:
    """Fits with several shares, and how likely each is, shape (fits,)."""

    fits: tuple[BlockFit, ...]
    shares: "Floats"
    weights: "Floats"

    @property
    def likeliest(self) -> BlockFit:
        """The fit with the likeliest share."""
        return self.fits[int(np.argmax(self.weights))]

    def contrast(self, parts: "Ints", signs: "Floats") -> tuple["Floats", "Floats", "Floats"]:
        """Return estimates, standard errors and degrees of freedom of contrasts, as `contrast_errors` takes them."""
        estimates = np.array([np.append(0.0, fit.estimates)[parts] @ signs for fit in self.fits])
        errors, degrees = map(np.array, zip(*(contrast_errors(fit, parts, signs) for fit in self.fits), strict=True))
        if len(self.fits) == 1:
            return estimates[0], errors[0], degrees[0]
        estimate = self.weights @ estimates
        variance, joint = average_variances(self.weights, errors**2, degrees)
        return estimate, np.sqrt(variance + self.weights @ (estimates - estimate) ** 2), joint


def name_cells(configuration: "Ints", group: "Ints") -> "Ints":
    """Return a code per combination of configuration and group, for each run."""
    combined = group * (int(configuration.max(initial=0)) + 1) + configuration
    codes: Ints = np.unique(combined, return_inverse=True)[1].astype(np.int64)
    return codes


@dataclass(frozen=True)
class MixedDesign:
    """All of a mixed fit that does not depend on the response: a design for each share."""

    designs: tuple[BlockDesign, ...]  # those of `_SHARES`, or of no share only

    @classmethod
    def of(cls, configuration: "Ints", nuisance: Nuisance, configurations: int, group: "Ints | None") -> "MixedDesign":
        """Return the design of runs of which those of a configuration in one group are alike; None: all independent.

        Where no configuration has two runs in a group, or none has two groups, nothing can tell the share, and it is 0.
        """
        code = np.arange(len(configuration)) if group is None else name_cells(configuration, group)
        cells, configured = int(code.max(initial=-1)) + 1, len(np.unique(configuration))
        groups = 0 if group is None else len(np.unique(group))
        is_known = cells < len(code) and cells - configured - groups + 1 > 0
        shares = _SHARES.tolist() if is_known else [0.0]
        return cls(
            tuple(BlockDesign.of(configuration, nuisance, configurations, Cells(code, share)) for share in shares)
        )

    def fit(self, response: "Floats") -> MixedFit:
        """Fit a response (n,)."""
        plain = self.designs[0].fit(response)
        if len(self.designs) == 1 or not plain.noise > 0:
            return MixedFit((plain,), np.zeros(1), np.ones(1))
        fits = [plain, *(design.fit(response) for design in self.designs[1:])]
        evidence = np.array([_log_likelihood(fit, design) for fit, design in zip(fits, self.designs, strict=True)])
        weights = _PRIOR * np.exp(evidence - evidence.max())
        likely = np.flatnonzero(weights >= _LEAST_WEIGHT * weights.sum())
        weights = weights[likely] / weights[likely].sum()
        return MixedFit(tuple(fits[index] for index in likely), _SHARES[likely], weights)


def fit_mixed(
    response: "Floats", configuration: "Ints", nuisance: Nuisance, configurations: int, group: "Ints | None"
) -> MixedFit:
    """Fit runs (n,) as `fit_blocks` does, those of a configuration in one group being alike; None: all independent."""
    return MixedDesign.of(configuration, nuisance, configurations, group).fit(response)


def _log_likelihood(fit: BlockFit, design: BlockDesign) -> float:
    """Return the restricted log likelihood of a share, but for a constant."""
    information = float(np.log(design.counts[np.isfinite(design.counts)]).sum()) + design.log_determinant
    of_runs = design.cells.log_determinant if design.cells is not None else 0.0
    return log_evidence(fit.own_squares, fit.own_degrees) - (of_runs + information) / 2
