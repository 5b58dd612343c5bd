"""Important points on the curve of a factor's effect: knees, turning points and cliffs.

Turning points and knees are Algorithms 2 and 3 of Hui et al., "On the Feasibility and Benefits of Extensive Evaluation"
(SIGMOD 2024); knees are found by Kneedle (Satopaa et al. 2011). Both look at the order of the effects, and order cannot
see a jump between two plateaus. So a change-point rule complements them, and both are shown: a cliff is a step that
is large against the whole range, against the other steps, against its neighbours (or it would be the steep part of a
saturating curve), and against what the curve's own slope explains over that distance. There may be several.
"""

import math
import warnings
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal

import numpy as np

from knobscope.errors import UserError
from knobscope.statistics.arrays import Floats
from knobscope.statistics.ranks import correlate_ranks

Axis = Literal["linear", "log"]
PointType = Literal["knee", "turning", "cliff"]

#: Spearman's correlation from which a curve counts as monotone, and the difference of two that makes a turn.
MONOTONE = 0.98
TURN = 0.8
LONG_CURVE = 8
#: A cliff is a step with at least this share of the range of the curve ...
CLIFF_SHARE = 0.3
#: ... at least so many times the median of the other steps that are no cliffs ...
CLIFF_STEPS = 5
#: ... and at least so many times both its neighbours, and what the typical slope gives over its distance.
CLIFF_NEIGHBOURS = 3
#: Two plateaus need four levels.
CLIFF_LEVELS = 4
#: Up and down within this share of the range is a plateau.
PLATEAU = 0.2
#: Effects whose range is less than so many standard errors have no shape worth naming.
NOISE_RANGE = 4
#: A reversal is none below so many standard errors of a difference, a bend none below so many of its own.
NOISE_REVERSAL = 3
NOISE_BEND = 3


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

    `axis` log spaces levels by their logarithm: doubling is one step. Knees depend on it, orders do not.
    `standard_error` of one effect, when known, silences curves that are only noise.
    UserError: log axis with levels that are not positive.
    """
    position, height = np.asarray(levels, float), np.asarray(effects, float)
    if axis == "log":
        if position.min() <= 0:
            raise UserError(f"a log axis needs levels above 0, found {position.min():g}; use a linear axis")
        position = np.log2(position)
    if len(position) < 3 or np.ptp(height) <= max(NOISE_RANGE * standard_error, 1e-9 * np.abs(height).max()):
        return []
    overall = _rank_correlation(position, height)
    monotone = _without_noise(height, overall, standard_error)
    cliffs = _cliffs(position, height, standard_error)
    # Between two plateaus there are no ranks to compare: only a curve that also comes back can turn.
    is_step = bool(cliffs) and _largest_fall(height * np.sign(overall)) < PLATEAU * np.ptp(height)
    shapes: list[tuple[PointType, tuple[int, float] | None]] = [
        ("knee", None if monotone is None else _knee(position, height, monotone, standard_error)),
        ("turning", None if monotone is not None or is_step else _turning(position, height)),
        *(("cliff", cliff) for cliff in cliffs),
    ]
    return [Point(kind, float(levels[hit[0]]), hit[1]) for kind, hit in shapes if hit]


def _rank_correlation(position: Floats, height: Floats) -> float:
    return float(np.nan_to_num(correlate_ranks(position, height)))  # of a flat piece 0


def turn_ratio(position: Floats, height: Floats, index: int) -> float:
    """Relative change of the regression slope at a level; infinite where it was flat below."""
    below = float(np.polyfit(position[: index + 1], height[: index + 1], 1)[0])
    above = float(np.polyfit(position[index:], height[index:], 1)[0])
    return abs((above - below) / below) if below else math.inf


def _without_noise(height: Floats, overall: float, standard_error: float) -> Floats | None:
    """Return a curve that only rises or only falls, None where this one does both; `overall` is its rank correlation.

    Where noise is known, it is the monotone curve nearest to this one (isotonic regression), provided that no reversal
    is larger than noise: on a noisy plateau ranks are chance.
    """
    from scipy.optimize import isotonic_regression

    if standard_error == 0:
        return height if abs(overall) >= MONOTONE else None
    sign = np.sign(overall) or 1.0
    if _largest_fall(height * sign) > NOISE_REVERSAL * math.sqrt(2) * standard_error:
        return None
    return np.asarray(isotonic_regression(height * sign).x * sign)


def _knee(position: Floats, height: Floats, monotone: Floats, standard_error: float) -> tuple[int, float] | None:
    """Algorithm 3: the knee of a monotone curve that levels off, if it fits the effects better than a straight line."""
    index = locate_knee(position, monotone, rising=bool(monotone[-1] > monotone[0]))
    if index is None or not 0 < index < len(position) - 1:
        return None
    if _bend(position, height, index) <= (NOISE_BEND * standard_error) ** 2:
        return None
    return index, turn_ratio(position, height, index)


def locate_knee(position: Floats, height: Floats, *, rising: bool) -> int | None:
    """Return the level nearest to the knee of a monotone curve; None: it has none."""
    from kneed import KneeLocator

    curve, direction = ("concave", "increasing") if rising else ("convex", "decreasing")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns when there is no knee, which is an answer here
        knee = KneeLocator(position, height, curve=curve, direction=direction, online=True).knee
    return None if knee is None else int(np.argmin(np.abs(position - float(knee))))


def _bend(position: Floats, height: Floats, index: int) -> float:
    """Sum of squares that a straight line leaves and one that bends at a level does not."""
    straight = np.column_stack([np.ones_like(position), position])
    bent = np.column_stack([straight, np.maximum(position - position[index], 0)])
    residuals = [height - design @ np.linalg.lstsq(design, height, rcond=None)[0] for design in (straight, bent)]
    return float((residuals[0] ** 2).sum() - (residuals[1] ** 2).sum())


def _largest_fall(rising: Floats) -> float:
    return float((np.maximum.accumulate(rising) - rising).max())


def _turning(position: Floats, height: Floats) -> tuple[int, float] | None:
    """Algorithm 2: the level where the rank correlation up to it differs most from that beyond it.

    On short curves the level is part of both sides, as in the authors' code; from eight levels on the sides share no
    level, so that one odd level cannot bend both, and of equals the last is taken: a curve rises up to its peak as
    strictly as up to the level before. Each side has two levels at least.
    """
    shared = len(position) < LONG_CURVE
    ends = range(1, len(position) - (1 if shared else 2))
    differences = []
    for i in ends:
        beyond = slice(i if shared else i + 1, None)
        below = _rank_correlation(position[: i + 1], height[: i + 1])
        differences.append(abs(below - _rank_correlation(position[beyond], height[beyond])))
    if max(differences) <= TURN:
        return None
    index = max(i for i, difference in zip(ends, differences, strict=True) if difference >= max(differences) - 1e-9)
    return index, turn_ratio(position, height, index)


def _cliffs(position: Floats, height: Floats, standard_error: float) -> list[tuple[int, float]]:
    """Steps between plateaus: the level beyond each, and its share of the range."""
    rise, run = np.diff(height), np.diff(position)
    steps = np.abs(rise)
    least = max(CLIFF_SHARE * float(np.ptp(height)), NOISE_RANGE * math.sqrt(2) * standard_error)
    large = steps >= least
    if len(height) < CLIFF_LEVELS or not large.any() or large.all():
        return []
    plain = float(np.median(steps[~large]))
    slope = abs(float(np.median((rise / run)[~large])))
    cliffs = []
    for i in np.flatnonzero(large):
        neighbours = steps[[j for j in (i - 1, i + 1) if 0 <= j < len(steps)]].max()
        if steps[i] >= max(CLIFF_STEPS * plain, CLIFF_NEIGHBOURS * neighbours, CLIFF_NEIGHBOURS * slope * run[i]):
            cliffs.append((int(i) + 1, float(steps[i] / np.ptp(height))))
    return cliffs
