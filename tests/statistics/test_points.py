"""Knees, turning points and cliffs on curves whose shape is known."""

import numpy as np
import pytest

from knobscope.errors import UserError
from knobscope.statistics.points import find_points

LEVELS = [1.0, 2, 3, 4, 5, 6, 7, 8, 9]


def kinds(effects: list[float], levels: list[float] = LEVELS, **more: object) -> list[tuple[str, float]]:
    return [(point.type, point.value) for point in find_points(levels, effects, **more)]  # type: ignore[arg-type]


def test_straight_line_has_no_points() -> None:
    assert kinds([2.0 * x for x in LEVELS]) == []


@pytest.mark.parametrize("sign", [1, -1])
def test_peak_or_valley_is_a_turning_point(sign: int) -> None:
    (point,) = find_points(LEVELS, [sign * v for v in (1, 2, 3, 4, 5, 4, 3, 2, 1)])
    assert (point.type, point.value) == ("turning", 5)
    assert point.turn_ratio == pytest.approx(2)  # the slope changes from 1 to -1


@pytest.mark.parametrize(("effects", "value"), [([1, 3, 2], 2), ([1, 2, 3, 1], 4), ([1, 5, 3, 1], 2)])
def test_short_curves_turn_at_their_extreme(effects: list[float], value: float) -> None:
    assert kinds(effects, [1, 2, 4, 8][: len(effects)]) == [("turning", value)]


def test_saturating_curve_has_a_knee_that_depends_on_the_axis() -> None:
    levels = [1.0, 2, 4, 8, 16, 32, 64]
    effects = [float(np.log2(x)) for x in levels]
    assert [kind for kind, _ in kinds(effects, levels)] == ["knee"]
    assert kinds(effects, levels, axis="log") == []  # every doubling gives the same


@pytest.mark.parametrize("effects", [[0, 0, 0, 0, 1, 1, 1, 1, 1], [0, 0.02, -0.01, 0.01, 1.01, 1, 0.98, 1.01, 1]])
def test_step_between_plateaus_is_a_cliff(effects: list[float]) -> None:
    assert kinds(effects) == [("cliff", 5)]
    assert kinds([-v for v in effects]) == [("cliff", 5)]


@pytest.mark.parametrize(
    ("effects", "values"),
    [
        ([0, 1, 1.02, 1, 1.01, 0.99, 1, 1.01, 1], [2]),  # the first level, such as 0 for off, is unlike all others
        ([0, 0.01, 0, 0.02, 0, 0.01, 0, 0.01, 1], [9]),
        ([0, 0.1, 0.2, 5, 5.1, 5.2, 10, 10.1, 10.2], [4, 7]),  # stairs
    ],
)
def test_cliffs_at_the_ends_and_several_of_them(effects: list[float], values: list[float]) -> None:
    assert [value for kind, value in kinds(effects) if kind == "cliff"] == values


def test_straight_and_saturating_curves_have_no_cliff_wherever_their_levels_are() -> None:
    assert kinds([1, 2, 3, 1000], [1, 2, 3, 1000]) == []
    saturating = [1 - 0.4**x for x in LEVELS]
    assert [kind for kind, _ in kinds(saturating)] == ["knee"]


def test_noise_has_no_shape() -> None:
    effects = np.random.default_rng(3).normal(0, 1, len(LEVELS)).tolist()
    assert kinds(effects, standard_error=1.0) == []


def test_one_small_dip_within_noise_keeps_a_rising_curve_rising() -> None:
    effects = [0, 4, 6, 7, 7.6, 8.0, 8.3, 8.5, 8.45]
    assert kinds(effects, standard_error=0.1)[0][0] == "knee"
    assert kinds(effects, standard_error=0.005)[0][0] == "turning"


def test_a_noisy_plateau_keeps_its_knee_and_a_noisy_line_has_none() -> None:
    rng = np.random.default_rng(1)
    plateau, line = np.minimum(np.array(LEVELS), 4), np.array(LEVELS) / 2
    found = [kinds((plateau + rng.normal(0, 0.15, 9)).tolist(), standard_error=0.15) for _ in range(50)]
    assert sum(one == [("knee", 4)] for one in found) >= 40
    assert sum(bool(kinds((line + rng.normal(0, 0.15, 9)).tolist(), standard_error=0.15)) for _ in range(50)) <= 2


def test_flat_curve_and_two_levels_have_no_points() -> None:
    assert kinds([3.0] * 9) == []
    assert kinds([1, 2], [1, 2]) == []


def test_log_axis_needs_positive_levels() -> None:
    with pytest.raises(UserError, match="above 0"):
        find_points([0, 1, 2], [1, 2, 3], "log")
