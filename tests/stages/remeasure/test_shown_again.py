"""Effects that are measured again: whether new pairs of runs show them, refute them or leave it open."""

import math
from dataclasses import replace

import numpy as np
import pytest
from known_times import REFERENCE_US, answer, ask, cause, pairs

from knobscope.stages.remeasure.causes import Answer
from knobscope.stages.remeasure.experiment import ITSELF
from knobscope.stages.remeasure.judging import judge_finding
from knobscope.stages.remeasure.questions import Question
from knobscope.stages.remeasure.shares import Amount, amount_of


def swept(seen: float | None, *, followed: bool = False, error: float = 0.01) -> Question:
    found = None if seen is None else Amount(seen, error, 8)
    return replace(ask(), swept=found, least=math.log1p(0.05), followed=followed)


@pytest.mark.parametrize("followed", [True, False])
@pytest.mark.parametrize(
    ("value_us", "seen", "conclusion"),
    [
        (2200, -math.log(11), "undecided"),  # there, and nothing known of the device yet
        (201, -math.log(11), "gone"),
        (201, -0.08, "gone"),
        (190, -0.08, "gone"),  # clear, and of the other sign
        (400, -math.log(11), "undecided"),  # smaller than half of what it was, and there
        (203, -0.08, "gone"),  # if there, too small to matter
        (211, -0.08, "undecided"),  # smaller than it seemed, and there
        (201, -0.06, "gone"),
        (201, -0.01, "gone"),  # too small for these runs, and for the sweep
        (201, None, "undecided"),
    ],
)
def test_an_effect_that_does_not_show_again_is_gone_whatever_the_device(
    value_us: float, seen: float | None, conclusion: str, followed: bool
) -> None:
    found = answer({ITSELF: value_us}, swept(seen, followed=followed), noise=0.005)
    assert found.conclusion == conclusion
    assert not (found.is_gone and found.is_open)
    assert followed or not found.is_open
    assert found.is_settled == (seen != -0.01)
    (row,) = found.rows()
    assert row["is_gone"] == (conclusion == "gone")
    assert row["again_low"] < row["again"] < row["again_high"]
    assert row["again"] == pytest.approx(math.log(REFERENCE_US / value_us), abs=0.01)
    judged = judge_finding(found, cause("flush"), "It flushes.")
    if conclusion == "gone":
        withdrawn = "Refuted: its effect did not reproduce in new runs. Original finding: It flushes."
        assert (judged["confirmed"], judged["sentence"]) == ("no", withdrawn)
        told = "with the runs of the sweep it is no clear effect" if seen == -0.01 else "certainly less than half"
        assert told in judged["confirmation"]
        assert judge_finding(found, None, "It flushes.")["confirmed"] == "no"
    else:
        assert judged["confirmed"] == ("not_tested" if followed or not found.is_reproduced else None)
        assert "sentence" not in judged


def test_a_gap_between_tiers_is_gone_where_both_devices_show_the_same_effect() -> None:
    """On the disk half as fast; on the SSD a fourth in the sweep, and half in new runs."""
    half = Amount(-math.log(2), 0.02, 6)
    gap = replace(ask("disk", half), swept=Amount(-math.log(4), 0.02, 6))
    assert answer({ITSELF: 800}, gap).conclusion == "undecided"
    gone = answer({ITSELF: 400}, gap)
    assert gone.conclusion == "gone"
    assert "less than half of the gap in the sweep, 2x slower" in gone.describe()


def test_on_a_device_without_a_model_new_runs_tell_the_effect_alone() -> None:
    said = answer({ITSELF: 2200}, swept(-math.log(11))).describe()
    assert "4\N{NO-BREAK SPACE}pairs of runs: sync = full is 11x slower (95" in said
    assert said.endswith("). The effect reproduced.")
    assert "what-if" not in said
    less = answer({ITSELF: 400}, swept(-math.log(11))).describe()
    assert "sync = full is 2x slower" in less
    assert less.endswith("The effect reproduced, but certainly less than half of that in the sweep, 11x slower.")
    gap = replace(ask("disk", Amount(-math.log(2), 0.02, 6)), swept=Amount(-math.log(11), 0.02, 6), followed=False)
    assert (
        "sync = full did 0.18x as much as on disk, relative to the default. " in answer({ITSELF: 2200}, gap).describe()
    )
    assert "e+" not in answer({ITSELF: 60_000}, gap).describe()


@pytest.mark.parametrize(("error", "conclusion"), [(0.004, "undecided"), (0.03, "gone")])
def test_what_does_not_show_again_stays_where_the_sweep_was_sure_enough(error: float, conclusion: str) -> None:
    """2 % slower, where new runs are too noisy to tell: it is there by a precise sweep, and by the other it is not."""
    found = answer({ITSELF: 204}, swept(-0.06, error=error), noise=0.02)
    assert not found.is_reproduced
    assert not found.is_settled
    assert found.conclusion == conclusion
    both = Amount(1.0, 0.2, 5).together_with(Amount(2.0, 0.1, 10))
    assert (both.mean, both.error) == (pytest.approx(1.8), pytest.approx(1 / math.sqrt(125)))
    assert both.degrees == pytest.approx(125**2 / (25**2 / 5 + 100**2 / 10))


def test_more_runs_may_answer_what_few_did_not() -> None:
    found = answer({ITSELF: 215}, swept(-0.08), noise=0.06)
    assert not found.is_settled
    found.add(ITSELF, pairs(ITSELF, 215, noise=0.06, count=40))
    assert found.is_settled
    assert found.pairs[ITSELF] == 40


def test_three_looks_withdraw_a_true_effect_in_one_of_forty_studies_at_most() -> None:
    """Effect as large as the sweep saw it, pairs whose noise is twice the effect; the upper end is all that counts."""
    rng = np.random.default_rng(1)
    gone = 0
    for _ in range(1000):
        made = Answer(swept(-0.1))
        for count in (4, 8, 12):
            # Truly half: as close as an effect may be.
            made.repeated_effect = amount_of(rng.normal(-0.05, 0.2, count).tolist())
            gone += made.is_refuted
            if made.is_refuted:
                break
    assert gone / 1000 < 0.035
