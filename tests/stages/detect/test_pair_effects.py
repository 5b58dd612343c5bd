"""Pairs of knobs that a sweep measures together: their interactions are found, and those that are none are not."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from generated_studies import Study, Truth

Make = Callable[..., Study]

#: A larger buffer makes runs 1.2 times as fast, reading ahead 1.5 times, and both together not 1.8 but 3 times.
TRUTH = {("ahead", "true"): Truth(np.log(1.5)), ("buffer", "32"): Truth(np.log(1.2)), ("page", "16"): Truth(0.1)}
FIELDS: dict[str, Any] = {
    "knobs": ("page", "buffer", "ahead", "pause"),
    "pairs": (("ahead", "buffer"), ("page", "pause")),
    "truth": TRUTH,
    "extra": {("true", "32"): np.log(3 / 1.8)},
    "repeats": 5,
}


@pytest.fixture(scope="module")
def study(make_study: Make) -> Study:
    return make_study(**FIELDS)


def pair_effects(study: Study) -> pd.DataFrame:
    return study.query("FROM pair_effects").set_index(["knob", "value", "other", "other_value"])


def test_each_pair_of_values_is_compared_with_both_alone(study: Study) -> None:
    found = pair_effects(study)
    assert len(found) == 1 * 2 + 2 * 2  # ahead x buffer, page x pause
    assert set(found["blocks"]) == {5}
    both = found.loc[("ahead", "true", "buffer", "32")]
    assert both["alone"] == pytest.approx(np.log(1.5), abs=0.05)
    assert both["other_alone"] == pytest.approx(np.log(1.2), abs=0.05)
    assert both["together"] == pytest.approx(np.log(3), abs=0.05)
    assert both["estimate"] == pytest.approx(np.log(3 / 1.8), abs=0.06)
    assert both["low"] < np.log(3 / 1.8) < both["high"]
    assert both["q_value"] < 0.01
    rest = found.drop(("ahead", "true", "buffer", "32"))
    assert ((rest["low"] < 0) & (rest["high"] > 0)).all()


def test_values_alone_have_the_effects_that_they_have_without_pairs(study: Study) -> None:
    """What was measured of pairs is compared with nothing else: effects are those of one value at a time."""
    effects = study.query("FROM effects WHERE metric = 'throughput_ops'").set_index(["knob", "value"])
    assert effects["beside"].isna().all()
    assert effects.loc[("buffer", "32"), "estimate"] == pytest.approx(np.log(1.2), abs=0.05)
    assert len(effects) == 2 + 2 + 1 + 2
    assert set(effects["runs"]) == {5}


def test_a_pair_whose_runs_failed_has_no_interaction(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if run["config_id"] in broken:
            run.update(status="failed_run", throughput_ops=None)

    broken: set[str] = set()
    whole = make_study(**FIELDS)
    ids = "SELECT DISTINCT config_id FROM knob_values WHERE (knob, value) IN (('ahead', 'true'), ('buffer', '32'))"
    broken |= set(whole.query(f"{ids} GROUP BY config_id HAVING count(*) = 2")["config_id"])
    found = pair_effects(make_study(**FIELDS, tweak=fail))
    assert ("ahead", "true", "buffer", "32") not in found.index
    assert ("ahead", "true", "buffer", "2") in found.index


def test_one_block_gives_an_estimate_and_no_interval(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if run["repeat"] > 0 and run["config_id"] in broken:
            run.update(status="failed_run", throughput_ops=None)

    whole = make_study(**FIELDS)
    broken = set(
        whole.query("SELECT config_id FROM knob_pairs WHERE value = 'true' AND other_value = '32'")["config_id"]
    )
    found = pair_effects(make_study(**FIELDS, tweak=fail)).loc[("ahead", "true", "buffer", "32")]
    assert found["blocks"] == 1
    assert found["estimate"] == pytest.approx(np.log(3 / 1.8), abs=0.1)
    assert found[["low", "high", "p_value", "q_value"]].isna().all()


@pytest.mark.long
def test_intervals_hold_the_truth_as_often_as_they_say(make_study: Make) -> None:
    held, alarms = [], 0
    devices = [f"nvme-{number}" for number in range(10)]  # forty cases: each has noise of its own
    for seed in range(4):
        found = pair_effects(make_study(**{**FIELDS, "extra": {}}, devices=devices, noise=0.1, seed=seed))
        held += ((found["low"] <= 0) & (found["high"] >= 0)).tolist()
        alarms += int((found.groupby("device")["q_value"].min() < 0.05).sum())
    assert len(held) == 40 * 6
    assert np.mean(held) == pytest.approx(0.95, abs=0.035)
    assert alarms <= 6
