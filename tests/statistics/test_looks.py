"""How much each look costs when an answer is looked for again and again."""

import numpy as np
import pytest
from scipy.stats import norm

from knobscope.statistics.looks import spend


@pytest.mark.parametrize(("first", "step", "looks"), [(15, 5, 40), (30, 30, 12), (20, 100, 5)])
def test_all_looks_together_have_the_chance_that_was_allowed(first: int, step: int, looks: int) -> None:
    sizes = [first + step * number for number in range(looks)]
    bounds = [spend(0.05, sizes[: number + 1]) for number in range(looks)]
    rng = np.random.default_rng(1)
    sums = rng.normal(0, np.sqrt(np.diff(sizes, prepend=0)), (40_000, looks)).cumsum(axis=1)
    lucky = (sums / np.sqrt(sizes) >= bounds).any(axis=1).mean()
    assert lucky == pytest.approx(0.05 * sizes[-1] / (sizes[-1] + first), abs=0.003)


def test_a_look_soon_after_another_costs_little() -> None:
    sizes = list(range(15, 201, 5))
    assert spend(0.05, [15]) == pytest.approx(norm.isf(0.025))
    # Were each of the looks charged in full, as if they had nothing in common:
    assert spend(0.05, sizes) < norm.isf(0.05 / (len(sizes) * (len(sizes) + 1))) - 0.4
    assert spend(0.05, [15, 15, 200]) == spend(0.05, [15, 200])
