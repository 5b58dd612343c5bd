"""Sessions on another level: found where one stands out, and not where sessions differ by any amount."""

import numpy as np
import pytest

from knobscope.statistics.level_shifts import judge_levels


def draw(rng: np.random.Generator, levels: list[float], noise: float = 0.03) -> tuple[np.ndarray, ...]:
    """Each group measures each of ten configurations, which differ much, and the default three times."""
    configuration = np.tile([0, *range(10), 0, 0], len(levels))
    group = np.repeat(np.arange(len(levels)), 13)
    effects = np.array([0, *rng.normal(0, 1, 9)])
    return np.array(levels)[group] + effects[configuration] + rng.normal(0, noise, len(group)), configuration, group


@pytest.mark.parametrize("times", [5.0, 0.2])
def test_a_session_that_is_five_times_faster_or_slower_is_found(times: float) -> None:
    rng = np.random.default_rng(1)
    level, other = judge_levels(*draw(rng, [0.1, np.log(times), -0.1]), 3)
    assert other.tolist() == [False, True, False]
    assert level[1] == pytest.approx(np.log(times), abs=0.1)
    assert abs(level[0] - 0.2) < 0.1


def test_of_two_levels_with_equally_many_sessions_nobody_knows_the_usual_one() -> None:
    rng = np.random.default_rng(2)
    level, other = judge_levels(*draw(rng, [0, np.log(5)]), 2)
    assert other.all()
    assert level == pytest.approx([-np.log(5), np.log(5)], abs=0.1)
    assert judge_levels(*draw(rng, [0, 0, np.log(5), np.log(5)]), 4)[1].all()


def test_sessions_that_differ_by_any_amount_have_no_usual_level() -> None:
    rng = np.random.default_rng(3)
    assert not judge_levels(*draw(rng, [0, 1.2, 2.4, 3.6]), 4)[1].any()
    assert not judge_levels(*draw(rng, [0, np.log(2), 0.1]), 3)[1].any()
    found = [judge_levels(*draw(rng, list(rng.normal(0, 0.2, 4))), 4)[1].any() for _ in range(200)]
    assert sum(found) == 0


def test_what_is_not_known_is_on_no_level() -> None:
    values, configuration, group = draw(np.random.default_rng(4), [0, 0, 0])
    values[group == 1] = np.nan
    level, other = judge_levels(values, configuration, group, 3)
    assert np.isnan(level).tolist() == [False, True, False]
    assert not other.any()
    assert np.isnan(judge_levels(values[group == 0], configuration[group == 0], group[group == 0], 1)[0]).all()
