"""How much of an effect a property of the device explains: the share that is gone on the what-if device without it.

What is explained is an amount Q: the time per operation that one setting takes more than the other (microseconds, which
add up over causes and so can be divided among them); or, where two tiers are compared, the natural-log ratio of the two
settings, of which the gap to the other tier is to be explained. With Q on the device, Q' on the what-if device and Q0
where nothing is left to explain (0, or the log ratio on the other tier), the share is 1 - (Q' - Q0) / (Q - Q0). Its
interval is Fieller's (1954), which has no end where the effect itself is not sure; both amounts need not be equally
sure, so the degrees of freedom are those of Welch for each share.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from knobscope.statistics.arrays import Bools, Floats
from knobscope.statistics.independent import join_errors

#: The ends of an interval are looked for among so many angles, three times, each between the two around the last.
_ANGLES, _REFINEMENTS = 200, 3
_FIELDS = ("mean", "error", "degrees")


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
        """Return the difference from an amount that was measured apart (degrees of freedom: Welch, Satterthwaite)."""
        return Amount(self.mean - other.mean, *add_variances((self, other)))

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


def add_variances(parts: Sequence[Amount]) -> tuple[float, float]:
    """Return standard error and degrees of freedom of a sum of amounts that were measured apart."""
    variances = [part.error**2 for part in parts]
    spread = math.fsum(variance**2 / part.degrees for variance, part in zip(variances, parts, strict=True))
    total = math.fsum(variances)
    return math.sqrt(total), total**2 / spread if spread > 0 else parts[0].degrees


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
    def of_a_whole(self) -> "Share":
        """The same of a time, of which noise may make a part more than all, or less than nothing."""
        return Share(*(min(max(end, 0.0), 1.0) for end in (self.estimate, self.low, self.high)))

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
    """Return the share of `original` that is gone in `changed`; `remainder` is what stays when all is explained.

    The three were measured apart. The interval holds each ratio r of what stays for which `changed` - r `original` -
    (1 - r) `remainder` is not clear; it has ends if `original` - `remainder` is clear.
    """
    above, below = changed.mean - remainder.mean, original.mean - remainder.mean
    if below == 0:
        return Share(math.nan, -math.inf, math.inf)
    amounts = (changed, original, remainder)
    estimate, most = math.atan(above / below), math.pi / 2  # angles, whose tangents are ratios
    if not _is_clear(amounts, np.array([most]))[0]:
        return Share(1 - above / below, -math.inf, math.inf)
    low, high = (math.tan(_first_clear(amounts, estimate, end)) for end in (-most, most))
    return Share(1 - above / below, 1 - high, 1 - low)


def _first_clear(amounts: Sequence[Amount], begin: float, end: float) -> float:
    """Return the first angle from `begin` on that is clear; `end` is."""
    for _ in range(_REFINEMENTS):
        angles = np.linspace(begin, end, _ANGLES)
        first = int(np.argmax(_is_clear(amounts, angles)))
        begin, end = angles[max(first - 1, 0)], angles[first]
    return end


def _is_clear(amounts: Sequence[Amount], angles: Floats) -> Bools:
    """Return whether the weighted sum of what was measured is clear at each angle (Welch, Satterthwaite)."""
    from scipy.special import stdtrit

    means, errors, degrees = (np.array([getattr(amount, name) for amount in amounts]) for name in _FIELDS)
    weights = np.array([np.cos(angles), -np.sin(angles), np.sin(angles) - np.cos(angles)])
    error, joint = join_errors(np.abs(weights) * errors[:, None], np.tile(degrees[:, None], len(angles)))
    clear: Bools = np.abs(means @ weights) > stdtrit(joint, 0.975) * error
    return clear
