"""Important points on the curve of a factor's effect: knees, turning points and cliffs.

Turning points and knees are Algorithms 2 and 3 of Hui et al., "On the Feasibility and Benefits of Extensive Evaluation"
(SIGMOD 2024); knees are found by Kneedle (Satopaa et al. 2011). Both look at the order of the effects, and order cannot
see a jump between two plateaus: cliffs are ours.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from knobscope.errors import UserError
from knobscope.select.design import Floats

__all__ = ["Axis", "Point", "find_points"]

Axis = Literal["linear", "log"]
PointType = Literal["knee", "turning", "cliff"]

#: Spearman's correlation from which a curve counts as monotone, and the difference of two that makes a turn.
MONOTONE = 0.98
TURN = 0.8
LONG_CURVE = 8
#: A cliff is one step with at least this share of the whole rise ...
CLIFF_SHARE = 0.6
#: ... and at least so many times the median step.
CLIFF_STEPS = 5
#: Up and down within this share of the range is a plateau.
PLATEAU = 0.2
#: Effects whose range is less than so many standard errors have no shape worth naming.
NOISE_RANGE = 4


@dataclass(frozen=True)
class Point:
    """`value` is the level of a knee or turn, or the first level beyond a cliff.

    `turn_ratio` is |slope above / slope below - 1|; for a cliff the share of the whole range that is in the one step.
    """

    type: PointType
    value: float
    turn_ratio: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields."""
        return asdict(self)


def find_points(
    levels: Sequence[float], effects: Sequence[float], axis: Axis = "linear", standard_error: float = 0.0
) -> list[Point]:
    """Find the important points of a curve: `effects` (any unit) at each of the `levels`, in rising order.

    `axis` log places levels by their logarithm: doubling is one step. Knees depend on it, orders do not.
    `standard_error` of one effect, when known, silences curves that are only noise.
    UserError: log axis with levels that are not positive.
    """
    place, height = np.asarray(levels, float), np.asarray(effects, float)
    if axis == "log":
        if place.min() <= 0:
            raise UserError(f"a log axis needs levels above 0, found {place.min():g}; use a linear axis")
        place = np.log2(place)
    if len(place) < 3 or np.ptp(height) <= max(NOISE_RANGE * standard_error, 1e-9 * np.abs(height).max()):
        return []
    overall = _rank_correlation(place, height)
    is_monotone = abs(overall) >= MONOTONE and not _reverses(height * np.sign(overall), standard_error)
    cliff = _cliff(height)
    # Between two plateaus there are no ranks to compare: only a curve that also comes back can turn.
    is_step = cliff is not None and _largest_fall(height * np.sign(overall)) < PLATEAU * np.ptp(height)
    shapes: dict[PointType, tuple[int, float] | None] = {
        "knee": _knee(place, height, rising=overall > 0) if is_monotone else None,
        "turning": None if is_monotone or is_step else _turning(place, height),
        "cliff": cliff,
    }
    return [Point(kind, float(levels[found[0]]), found[1]) for kind, found in shapes.items() if found]


def _rank_correlation(place: Floats, height: Floats) -> float:
    """Spearman's correlation; 0 for a flat piece."""
    from scipy.stats import rankdata

    if np.ptp(height) == 0 or np.ptp(place) == 0:
        return 0.0
    return float(np.corrcoef(rankdata(place), rankdata(height))[0, 1])


def _turn_ratio(place: Floats, height: Floats, index: int) -> float:
    """Relative change of the regression slope at a level; infinite where it was flat below."""
    below = float(np.polyfit(place[: index + 1], height[: index + 1], 1)[0])
    above = float(np.polyfit(place[index:], height[index:], 1)[0])
    return abs((above - below) / below) if below else math.inf


def _knee(place: Floats, height: Floats, rising: bool) -> tuple[int, float] | None:
    """Algorithm 3: the knee of a monotone curve that levels off."""
    from kneed import KneeLocator

    curve, direction = ("concave", "increasing") if rising else ("convex", "decreasing")
    with warnings.catch_warnings():
        # It warns when there is no knee, which is an answer here.
        warnings.simplefilter("ignore")
        knee = KneeLocator(place, height, curve=curve, direction=direction, online=True).knee
    if knee is None:
        return None
    index = int(np.argmin(np.abs(place - float(knee))))
    return (index, _turn_ratio(place, height, index)) if 0 < index < len(place) - 1 else None


def _reverses(rising: Floats, standard_error: float) -> bool:
    """Whether a curve that rises overall falls somewhere by more than noise; never where noise is unknown."""
    return 0 < NOISE_RANGE * math.sqrt(2) * standard_error < _largest_fall(rising)


def _largest_fall(rising: Floats) -> float:
    return float((np.maximum.accumulate(rising) - rising).max())


def _turning(place: Floats, height: Floats) -> tuple[int, float] | None:
    """Algorithm 2: the level where the rank correlation up to it differs most from that beyond it.

    On short curves the level is part of both sides, as in the paper; from eight levels on the sides share no level, so
    that one odd level cannot bend both, and of equals the last is taken: a curve rises up to its peak as strictly as up
    to the level before. Each side has two levels at least.
    """
    shared = len(place) < LONG_CURVE
    ends = range(1, len(place) - (1 if shared else 2))
    differences = []
    for i in ends:
        beyond = slice(i if shared else i + 1, None)
        below = _rank_correlation(place[: i + 1], height[: i + 1])
        differences.append(abs(below - _rank_correlation(place[beyond], height[beyond])))
    if max(differences) <= TURN:
        return None
    index = max(i for i, difference in zip(ends, differences, strict=True) if difference >= max(differences) - 1e-9)
    return index, _turn_ratio(place, height, index)


def _cliff(height: Floats) -> tuple[int, float] | None:
    """One step with most of the range, at least two levels on either side of it."""
    steps = np.abs(np.diff(height))
    index = int(np.argmax(steps))
    share = float(steps[index] / np.ptp(height))
    others = float(np.median(np.delete(steps, index)))
    is_inside = 1 <= index <= len(steps) - 2
    return (index + 1, share) if is_inside and share >= CLIFF_SHARE and steps[index] >= CLIFF_STEPS * others else None
