"""Scales from data to pixels, and where their ticks go."""

import math
from dataclasses import dataclass
from itertools import pairwise

from knobscope.text.formats import format_number

Tick = tuple[float, str]

#: Ratios that read well on an axis of x-fold changes: steps around 1x, and leading digits of each power of ten.
_NEAR = (
    (0.98, 0.99, 1, 1.01, 1.02),
    (0.9, 0.95, 1, 1.05, 1.1),
    (0.6, 0.7, 0.8, 0.9, 1, 1.1, 1.2, 1.4, 1.6),
    (0.4, 0.5, 0.6, 0.8, 1, 1.25, 1.6, 2, 2.5),
)
_DIGITS = ((1, 1.5, 2, 3, 5, 7), (1, 2, 5), (1, 3), (1,))


@dataclass(frozen=True)
class Scale:
    """Maps `low`..`high` to the pixels `start`..`end`, evenly or by logarithm."""

    low: float
    high: float
    start: float
    end: float
    log: bool = False

    def __call__(self, value: float) -> float:
        """Return the position of a value; what lies outside is put at the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            share = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            share = (value - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def holds(self, value: float) -> bool:
        """Whether a value lies inside."""
        return self.low <= value <= self.high


def linear_ticks(low: float, high: float, count: int = 5) -> list[float]:
    """Return round values between two ends, about `count` of them."""
    if not high > low:
        return [low]
    raw = (high - low) / count
    power = 10.0 ** math.floor(math.log10(raw))
    step = next(power * factor for factor in (1, 2, 2.5, 5, 10) if power * factor >= raw * 0.999)
    first = math.ceil(low / step - 1e-9)
    return [round(index * step, 12) for index in range(first, math.floor(high / step + 1e-9) + 1)]


def power_ticks(low: float, high: float, base: int, most: int = 8) -> list[float]:
    """Return powers of a base between two ends, thinned out to at most `most`."""
    first, last = math.ceil(math.log(low, base) - 1e-9), math.floor(math.log(high, base) + 1e-9)
    exponents = list(range(first, last + 1))
    stride = max(1, math.ceil(len(exponents) / most))
    return [float(base) ** exponent for exponent in exponents[::stride]]


def ratio_ticks(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten between two ends; only the powers where there are many."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    digits = (1, 2, 5) if len(powers) < 5 else (1,)
    return [tick for power in powers for digit in digits if low <= (tick := digit * 10.0**power) <= high]


def fold_ticks(low: float, high: float, most: int = 7) -> list[Tick]:
    """Return ticks for natural-log ratios, labelled as x-fold changes; 1x is among them when in range."""
    decades = range(math.floor(low / math.log(10)), math.ceil(high / math.log(10)) + 1)
    grids = [*_NEAR, *([digit * 10.0**power for power in decades for digit in digits] for digits in _DIGITS)]
    for grid in grids:
        positions = [math.log(ratio) for ratio in grid]
        gap = min(after - before for before, after in pairwise(positions))
        reaches = positions[0] - gap <= low and positions[-1] + gap >= high
        if reaches and gap >= (high - low) / (1.7 * most):
            break
    return [(position, f"{format_number(math.exp(position), 3)}x") for position in positions if low <= position <= high]


def short_number(value: float) -> str:
    """Return a number that fits under a tick: 1k, 2.5M."""
    for limit, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= limit:
            return f"{format_number(value / limit, 3)}{letter}"
    return format_number(value, 3)


def spread_labels(positions: list[float], gap: float, low: float, high: float) -> list[float]:
    """Move label positions apart so that none are closer than `gap`, keeping their order and staying inside."""
    order = sorted(range(len(positions)), key=lambda index: positions[index])
    moved = dict.fromkeys(order, 0.0)
    previous = low - gap
    for index in order:
        moved[index] = previous = max(positions[index], previous + gap)
    following = high + gap
    for index in reversed(order):
        moved[index] = following = min(moved[index], following - gap)
    return [moved[index] for index in range(len(positions))]
