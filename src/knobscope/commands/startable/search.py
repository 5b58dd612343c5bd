"""Bisection of the range in which a server starts."""

import math
from collections.abc import Callable
from dataclasses import dataclass

#: How near the refused and the started value are in the end: relative on a log scale, of the width on a linear one.
_PRECISION = 0.01

Number = int | float
#: Value -> what the server says when it does not start, None when it does.
Refuse = Callable[[Number], str | None]


class NothingStartsError(Exception):
    """Neither the default nor an end of the range starts; the message holds the server's words."""


@dataclass(frozen=True)
class Refused:
    """A value that does not start, as near to one that does as was looked, and the words of the first refusal."""

    value: Number
    words: str


@dataclass(frozen=True)
class Found:
    """Smallest and largest value that started, and what lies beyond them."""

    low: Number
    high: Number
    below: Refused | None
    above: Refused | None


def search_range(low: Number, high: Number, default: Number | None, *, log: bool, refuse: Refuse) -> Found:
    """Find the part of [low, high] that starts, taken to be one piece around the default.

    Both ends are tried first, which is all when they start. `default` starts by itself; None when it is no number or
    lies outside. Integers stay integers. NothingStartsError: there is no anchor to bisect from.
    """
    words_low, words_high = refuse(low), refuse(high)
    inner = default if default is not None and low <= default <= high else None
    if inner is None and words_low is not None and words_high is not None:
        raise NothingStartsError(words_low)
    first, below = low, None
    if words_low is not None:
        first, last = _bisect(low, high if inner is None else inner, high - low, log, refuse)
        below = Refused(last, words_low)
    final, above = high, None
    if words_high is not None:
        final, last = _bisect(high, low if inner is None else inner, high - low, log, refuse)
        above = Refused(last, words_high)
    return Found(first, final, below, above)


def _bisect(refused: Number, started: Number, width: Number, log: bool, refuse: Refuse) -> tuple[Number, Number]:
    """Return the outermost value that started, and the refused one next to it."""
    while (middle := _middle(refused, started, width, log)) is not None:
        if refuse(middle) is None:
            started = middle
        else:
            refused = middle
    return started, refused


def _middle(refused: Number, started: Number, width: Number, log: bool) -> Number | None:
    """Return the value between, None when both are near enough."""
    small, large = sorted((refused, started))
    is_log = log and small > 0
    if large - small <= _PRECISION * (small if is_log else width):
        return None
    middle = math.sqrt(small) * math.sqrt(large) if is_log else (small + large) / 2
    if isinstance(small, int) and isinstance(large, int):
        middle = round(middle)
    return middle if small < middle < large else None
