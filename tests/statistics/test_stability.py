"""A stop on the stability of conclusions."""

import numpy as np
import pandas as pd
import pytest
from known_tables import known_grid

from knobscope.stages.select import select_knobs
from knobscope.statistics.design import Term
from knobscope.statistics.explained import ExplainedTerm
from knobscope.statistics.stability import Conclusions, conclude, count_stable, decide

FACTORS = ["page", "flush", "cache", "log", "idle", "other"]


def conclusion(*terms: str) -> Conclusions:
    return Conclusions(frozenset(terms), frozenset(terms), {})


def test_only_terms_of_some_size_and_significance_count() -> None:
    explained = [
        ExplainedTerm(Term(("a",)), 0.5, 0.001),
        ExplainedTerm(Term(("b",)), 0.02, 0.001),
        ExplainedTerm(Term(("c",)), 0.2, 0.2),
        ExplainedTerm(Term(("a", "d")), 0.1, None),
    ]
    points = [{"knob": "a", "type": "knee", "value": 3.0, "turn_ratio": 1.0}]
    found = conclude(explained, points)
    assert found.terms == {"a", "a:d"} and found.points == {"a": {("knee", 3.0)}}


def test_a_term_at_the_edge_may_waver_but_not_vanish() -> None:
    def having(share: float, *values: float) -> Conclusions:
        terms = [ExplainedTerm(Term(("a",)), 0.5, 0.0), ExplainedTerm(Term(("b",)), share, 0.0)]
        return conclude(terms, [{"knob": "a", "type": "cliff", "value": value} for value in values])

    assert having(0.06, 4).agree(having(0.04, 4))
    assert not having(0.06).agree(having(0.01))
    assert not having(0.06, 4).agree(having(0.06, 5))
    assert not having(0.06, 4).agree(having(0.06))


@pytest.mark.parametrize(
    ("history", "rounds"),
    [
        ([], 0),
        ([None], 0),
        ([conclusion()], 0),
        ([conclusion("a")], 1),
        ([conclusion("a"), conclusion("a", "b"), conclusion("a", "b")], 2),
        ([conclusion("a"), None, conclusion("a")], 1),
        ([conclusion("a"), conclusion("a"), conclusion("b")], 1),
    ],
)
def test_rounds_with_the_same_conclusions_are_counted(history: list[Conclusions | None], rounds: int) -> None:
    assert count_stable(history) == rounds


def test_rules_need_one_or_both() -> None:
    assert [decide(rule, True, 1, 3) for rule in ("r2", "stability", "both")] == [True, False, False]
    assert [decide(rule, False, 3, 3) for rule in ("r2", "stability", "both")] == [False, True, False]
    assert decide("both", True, 3, 3)


def rounds_of(noise: float) -> pd.DataFrame:
    runs = known_grid(noise).sample(240, random_state=2)
    return runs.assign(round=np.arange(240) // 60)


def test_a_study_with_noise_stops_when_its_conclusions_hold() -> None:
    runs = rounds_of(noise=0.15)
    by_r2 = select_knobs(runs, FACTORS, "y")
    by_both = select_knobs(runs, FACTORS, "y", stop="both")
    by_stability = select_knobs(runs, FACTORS, "y", stop="stability", stable_rounds=2)
    assert not by_r2.stopped and by_r2.stable_rounds == 0
    assert by_stability.stopped and "conclusions have been the same for 2 of 2 rounds" in by_stability.reason
    assert not by_both.stopped


def test_the_first_round_is_no_stability() -> None:
    first = rounds_of(noise=0.02).query("round == 0")
    assert not select_knobs(first, FACTORS, "y", stop="stability").stopped


def test_mismatch_counts_terms_and_points_of_either() -> None:
    knee = frozenset({("knee", 4.0)})
    first = Conclusions(frozenset("ab"), frozenset("ab"), {"a": knee})
    assert first.mismatch(first) == 0
    assert first.mismatch(Conclusions(frozenset("a"), frozenset("ab"), {"a": knee})) == 0  # b wavers at the edge
    assert first.mismatch(Conclusions(frozenset("a"), frozenset("a"), {"a": knee})) == pytest.approx(1 / 3)
    assert first.mismatch(Conclusions(frozenset("ab"), frozenset("ab"), {"a": frozenset()})) == pytest.approx(1 / 3)
    assert first.mismatch(Conclusions(frozenset("c"), frozenset("c"), {})) == 1
    nothing = Conclusions(frozenset(), frozenset(), {})
    assert nothing.mismatch(nothing) == 0
