"""Shares of an effect that a what-if device removes: intervals that hold the truth as often as they say."""

import math

import numpy as np
import pytest

from knobscope.stages.remeasure.shares import NOTHING, Amount, amount_of, remaining_share


def test_intervals_of_shares_cover_as_often_as_they_say() -> None:
    """Truth .6 of an effect, 4 pairs, noise of a quarter of the effect in each."""
    rng = np.random.default_rng(1)
    hits = 0
    for _ in range(1000):
        original, changed = (amount_of(rng.normal(mean, 0.25, 4).tolist()) for mean in (1, 0.4))
        share = remaining_share(changed, original, NOTHING)
        hits += share.low <= 0.6 <= share.high
    assert 0.93 <= hits / 1000 <= 0.97


def test_a_share_of_a_clear_effect_has_ends() -> None:
    """However few and noisy pairs the what-if device has; an effect that is not clear has none."""
    changed = Amount(0.4, 0.3, 2)
    share = remaining_share(changed, Amount(1.0, 0.4, 11), NOTHING)
    assert share.estimate == pytest.approx(0.6)
    assert math.isfinite(share.low) and share.low < 0.6 < share.high < math.inf
    assert remaining_share(changed, Amount(1.0, 0.5, 11), NOTHING).high == math.inf
    gap = remaining_share(changed, Amount(1.0, 0.1, 11), Amount(0.5, 0.1, 11))
    assert math.isfinite(gap.low) and gap.estimate == pytest.approx(1.2)


def test_a_difference_is_as_uncertain_as_the_worse_known_amount() -> None:
    """Welch and Satterthwaite; the degrees of the better known one would make this clear."""
    gap = Amount(0.4, 0.02, 11).minus(Amount(0.1, 0.1, 2))
    assert gap.error == pytest.approx(math.hypot(0.02, 0.1))
    assert gap.degrees == pytest.approx(2.16, abs=0.01)
    assert not gap.is_clear()
    assert Amount(0.4, 0.02, 11).minus(NOTHING) == Amount(0.4, 0.02, pytest.approx(11))
