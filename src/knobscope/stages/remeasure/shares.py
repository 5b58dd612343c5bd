"""How much of an effect a property of the device explains: the share that is gone on the what-if device without it.

What is explained is an amount Q: the time per operation that one setting takes more than the other (microseconds, which
add up over causes and so can be divided among them); or, where two tiers are compared, the natural-log ratio of the two
settings, of which the gap to the other tier is to be explained. With Q on the device, Q' on the what-if device and Q0
where nothing is left to explain (0, or the log ratio on the other tier), the share is 1 - (Q' - Q0) / (Q - Q0). Its
interval is Fieller's (1954), which has no end where the effect itself is not sure.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["NOTHING", "Amount", "Share", "amount_of", "ratio_share", "remaining_share"]


@dataclass(frozen=True)
class Amount:
    """A mean with its standard error, and the degrees of freedom that this rests on."""

    mean: float
    error: float
    degrees: float

    def interval(self, significance: float = 0.05) -> tuple[float, float]:
        """Return its interval of confidence, of Student's t."""
        from scipy.special import stdtrit

        margin = float(stdtrit(self.degrees, 1 - significance / 2)) * self.error
        return self.mean - margin, self.mean + margin

    def minus(self, other: "Amount") -> "Amount":
        """Return the difference from an amount that was measured apart, with the degrees of freedom of this one."""
        return Amount(self.mean - other.mean, math.hypot(self.error, other.error), self.degrees)

    def together_with(self, other: "Amount") -> "Amount":
        """Return the mean of two measurements of the same, each weighted by its precision (Welch, Satterthwaite)."""
        weights = [1 / max(amount.error, 1e-12) ** 2 for amount in (self, other)]
        total_weight = math.fsum(weights)
        spread = math.fsum(weight**2 / amount.degrees for weight, amount in zip(weights, (self, other), strict=True))
        mean = (weights[0] * self.mean + weights[1] * other.mean) / total_weight
        return Amount(mean, 1 / math.sqrt(total_weight), total_weight**2 / spread)

    def is_clear(self, significance: float = 0.05) -> bool:
        """Whether its interval leaves out zero."""
        low, high = self.interval(significance)
        return low > 0 or high < 0


#: What is left of an effect that is explained whole.
NOTHING = Amount(0.0, 0.0, 1.0)


@dataclass(frozen=True)
class Share:
    """Which share of an effect is gone, with its 95 % interval; infinite ends where the effect is not sure."""

    estimate: float
    low: float
    high: float

    @property
    def is_most(self) -> bool:
        """Whether it is surely something, and half or more."""
        return self.low > 0 and self.estimate >= 0.5

    @property
    def is_part(self) -> bool:
        """Whether it is surely something, and a quarter or more: one of several causes."""
        return self.low > 0 and self.estimate >= 0.25

    @property
    def is_less_than_half(self) -> bool:
        """Whether it is surely less than half."""
        return self.high < 0.5

    @property
    def is_minor(self) -> bool:
        """Whether it is neither the larger part nor one of several causes."""
        return self.is_less_than_half and not self.is_part


def amount_of(values: Sequence[float]) -> Amount:
    """Return mean and error of repeated measurements; at least two."""
    count = len(values)
    mean = math.fsum(values) / count
    variance = math.fsum((value - mean) ** 2 for value in values) / (count - 1)
    return Amount(mean, math.sqrt(variance / count), count - 1)


def remaining_share(changed: Amount, original: Amount, remainder: Amount) -> Share:
    """Return the share of `original` that is gone in `changed`; `remainder` is what stays when all is explained."""
    stays = ratio_share(
        (changed.mean - remainder.mean, original.mean - remainder.mean),
        (changed.error**2 + remainder.error**2, original.error**2 + remainder.error**2, remainder.error**2),
        min(changed.degrees, original.degrees),
    )
    return Share(1 - stays.estimate, 1 - stays.high, 1 - stays.low)


def ratio_share(means: tuple[float, float], variances: tuple[float, float, float], degrees: float) -> Share:
    """Return the ratio of two means, with Fieller's interval.

    `variances` are those of the means above and below the line, and their covariance.
    """
    from scipy.special import stdtrit

    (above, below), (v_above, v_below, v_both) = means, variances
    margin = float(stdtrit(degrees, 0.975))
    if below == 0:
        return Share(math.nan, -math.inf, math.inf)
    square = below**2 - margin**2 * v_below
    middle = above * below - margin**2 * v_both
    root = middle**2 - square * (above**2 - margin**2 * v_above)
    if square <= 0 or root < 0:
        return Share(above / below, -math.inf, math.inf)
    ends = [(middle + sign * math.sqrt(root)) / square for sign in (-1, 1)]
    return Share(above / below, min(ends), max(ends))
