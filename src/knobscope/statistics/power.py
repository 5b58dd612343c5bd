"""How small an effect a comparison finds, and how many blocks it takes: the power of two-sided t tests.

An effect is found when its p value passes Benjamini and Hochberg's procedure over all comparisons of the study. Their
hardest case is one effect among nothing but noise: its p value has to be at most fdr / comparisons, as by Bonferroni's
rule. That is what is requested here, so that the power is never less than promised.

With a true effect d and a standard error s on f degrees of freedom, the t statistic has a noncentral t distribution
with noncentrality d / s. Its distribution function is approximated in closed form (Abramowitz and Stegun, Handbook of
Mathematical Functions, 26.7.10; after N. L. Johnson and B. L. Welch, Biometrika 31, 1940): exact ones cannot be
inverted where a few degrees of freedom and many comparisons make the critical value large. An effect that is found with
the wrong sign does not count.
"""

from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Bools, Floats, Ints

#: More blocks than this nobody measures.
_MOST_BLOCKS = 10_000
#: A ratio that is equal to the one aimed at but for rounding suffices.
_SLACK = 1e-9


@dataclass(frozen=True)
class Aim:
    """What a sweep is to find: effects of a size (a ratio above 1), with a power, among all comparisons of a study.

    `between_devices`: the difference of an effect between two devices is to be found, too. Its variance is the sum of
    the two devices' own, so that it is small enough whenever either device's error is 1 / sqrt(2) of what one device
    alone would need. Its degrees of freedom (Welch) are never fewer than those of the worse side.
    """

    effect: float
    power: float
    fdr: float
    comparisons: int
    between_devices: bool = False

    def smallest(self, errors: Floats, degrees: Floats) -> Floats:
        """Return the smallest effects that are found, as ratios; infinite where the error is not known.

        `errors` (standard errors of natural-log ratios) and `degrees` have one shape, which the result has, too.
        """
        joint = np.sqrt(2) if self.between_devices else 1.0
        alpha = self.fdr / max(self.comparisons, 1)
        with np.errstate(over="ignore"):
            ratios = np.exp(find_noncentrality(alpha, self.power, degrees) * errors * joint)
        return np.where(np.isfinite(ratios), ratios, np.inf)

    def suffices(self, smallest: Floats) -> Bools:
        """Return which smallest effects are small enough."""
        enough: Bools = smallest <= self.effect * (1 + _SLACK)
        return enough

    def smallest_in_blocks(self, noise: float, blocks: int, values: int, sentinels: int) -> float:
        """Return the smallest effect that complete blocks find, each with every value once and so many sentinels.

        `noise` is the standard deviation of a run's natural-log throughput, the same for all values.
        """
        error = noise * np.sqrt((1 + 1 / sentinels) / blocks)
        degrees = blocks * (values + sentinels) - values - blocks
        return float(self.smallest(np.array([error]), np.array([max(degrees, 1.0)]))[0])

    def count_blocks(self, noise: float, values: int, sentinels: int) -> int | None:
        """Return how many complete blocks (two or more) find the effect aimed at; None: more than anybody measures."""
        few, many = 1, 2

        def suffices(blocks: int) -> bool:
            return bool(self.suffices(np.array([self.smallest_in_blocks(noise, blocks, values, sentinels)]))[0])

        while not suffices(many):
            few, many = many, 2 * many
            if many > _MOST_BLOCKS:
                return None
        while many - few > 1:
            middle = (few + many) // 2
            few, many = (few, middle) if suffices(middle) else (middle, many)
        return many


def find_noncentrality(alpha: float, power: float, degrees: Floats) -> Floats:
    """Return the noncentrality (effect / standard error) at which a two-sided t test at `alpha` has this power.

    For 2 degrees of freedom or more the exact power is at most .002 less and .015 more (for 80 and 90 %, measured in
    `tests/statistics/test_visible_effects.py`); fewer than one count as one.
    """
    from scipy.special import ndtri, stdtrit

    degrees = np.maximum(degrees, 1.0)
    critical = -stdtrit(degrees, alpha / 2)
    spread = np.sqrt(1 + critical**2 / (2 * degrees))
    return np.asarray(critical * (1 - 1 / (4 * degrees)) + ndtri(power) * spread)


def pool_noise(response: Floats, group: Ints) -> tuple[float, int]:
    """Return the standard deviation of runs of one configuration within groups, and its degrees of freedom.

    Both arrays are of shape (runs,). NaN where no group has two runs.
    """
    _, codes = np.unique(group, return_inverse=True)
    runs = np.bincount(codes)
    means = np.bincount(codes, response) / np.maximum(runs, 1)
    degrees = int((runs - 1).sum())
    squares = float(((response - means[codes]) ** 2).sum())
    return (float(np.sqrt(squares / degrees)) if degrees > 0 else float("nan")), degrees
