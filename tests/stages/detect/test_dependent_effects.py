"""A knob that counts only when another one is on: its effects are those beside that change, and are told as such."""

import json
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
import pytest
from generated_studies import Study, Truth

Make = Callable[..., Study]

#: Reading ahead makes runs 1.5 times as fast; a wider window adds 20 % to that, a narrower one takes 40 % away.
AHEAD, WIDE, NARROW = np.log(1.5), np.log(1.2), np.log(0.6)
TRUTH = {
    ("ahead", "true"): Truth(AHEAD, writes=0.3),
    ("window", "32"): Truth(AHEAD + WIDE, writes=0.3),
    ("window", "2"): Truth(AHEAD + NARROW, writes=0.3),
}
BESIDE = '{"ahead":"true"}'


@pytest.fixture
def study(make_study: Make) -> Study:
    return make_study(knobs=("ahead", "page", "window"), truth=TRUTH, repeats=4, devices=("hdd", "nvme"))


def effects(study: Study, metric: str = "throughput_ops", device: str = "nvme") -> pd.DataFrame:
    rows = study.query(f"FROM effects WHERE metric = '{metric}' AND device = '{device}'")
    return rows.set_index(["knob", "value"])


def test_effects_of_a_dependent_knob_are_against_what_it_depends_on(study: Study) -> None:
    """Against the default configuration the narrow window would be 10 % slower only, and the wide one 80 % faster."""
    found = effects(study)
    assert found.loc[("window", "32"), "estimate"] == pytest.approx(WIDE, abs=0.05)
    assert found.loc[("window", "2"), "estimate"] == pytest.approx(NARROW, abs=0.05)
    assert found.loc[("ahead", "true"), "estimate"] == pytest.approx(AHEAD, abs=0.05)
    assert found["beside"].dropna().to_dict() == {("window", "2"): BESIDE, ("window", "32"): BESIDE}
    assert found.loc[("window", "32"), ["baseline", "step", "runs", "blocks"]].tolist() == ["8", 1, 4, 4]
    writes = effects(study, "writes_per_op")
    assert abs(writes.loc[("window", "32"), "estimate"]) < 0.05
    assert writes.loc[("ahead", "true"), "estimate"] == pytest.approx(0.3, abs=0.05)


def test_the_reference_speed_is_that_of_the_change(study: Study) -> None:
    found = effects(study)
    ratio = found.loc[("window", "32"), "reference"] / found.loc[("page", "1"), "reference"]
    assert np.log(ratio) == pytest.approx(AHEAD, abs=0.05)


@pytest.mark.long
def test_intervals_of_dependent_effects_hold_the_truth_as_often_as_they_say(make_study: Make) -> None:
    held = []
    devices = [f"nvme-{number}" for number in range(10)]  # thirty cases: each has noise of its own
    fields = {"knobs": ("ahead", "page", "window"), "truth": TRUTH, "repeats": 4, "noise": 0.1, "devices": devices}
    for seed in range(3):
        study = make_study(**fields, seed=seed)
        for found in (effects(study, device=device) for device in devices):
            for value, truth in (("32", WIDE), ("2", NARROW)):
                held.append(found.loc[("window", value), "low"] <= truth <= found.loc[("window", value), "high"])
    assert len(held) == 60
    assert np.mean(held) > 0.85


def test_the_runs_behind_are_those_that_were_compared(study: Study) -> None:
    rows = study.query(
        "SELECT side, value, r.config_id, is_sentinel, count(*) AS n FROM runs_behind b JOIN runs r USING (run_id) "
        "WHERE knob = 'window' AND b.device = 'nvme' GROUP BY ALL"
    )
    ahead = study.query("SELECT DISTINCT config_id FROM single_changes WHERE knob = 'ahead'")["config_id"].tolist()
    base = rows[rows["side"] == "default"]
    assert base["config_id"].unique().tolist() == ahead
    assert not base["is_sentinel"].any()
    assert base["n"].tolist() == [4, 4]


def test_sentences_name_the_other_change(study: Study) -> None:
    found = study.judge("intuition").set_index(["device", "knob", "value"])
    narrow = found.loc[("nvme", "window", "2")]
    assert narrow["sentence"].startswith("Lowering window from 8 KiB to 2 KiB with ahead = on makes")
    assert json.loads(narrow["evidence"])["beside"] == {"ahead": "true"}
    assert narrow["effect"] == pytest.approx(-0.4, abs=0.03)
    slower = study.judge("slower_tier").set_index(["knob", "value"])
    assert "with window = 2 KiB with ahead = on is slower on nvme" in slower.loc[("window", "2"), "sentence"]
    assert "beside" not in slower.loc[("page", "1"), "sentence"]


def test_without_the_run_that_it_is_compared_with_nothing_is_claimed(make_study: Make) -> None:
    """The wide window is far faster than the default configuration; what it depends on failed in all but one block."""
    knobs = {"knobs": ("ahead", "page", "window"), "truth": TRUTH, "repeats": 4}
    (ahead,) = make_study(**knobs).query("SELECT config_id FROM single_changes WHERE knob = 'ahead'")["config_id"]

    def fail(run: dict[str, Any]) -> None:
        if run["config_id"] == ahead and run["repeat"] > 0:
            run.update(status="failed_run", throughput_ops=None)

    found = effects(make_study(**knobs, tweak=fail))
    assert found.loc[("window", "32"), ["runs", "blocks"]].tolist() == [4, 1]
    assert found.loc[[("window", "32"), ("window", "2")], ["low", "high", "q_value"]].isna().all(axis=None)


def test_a_value_that_risks_nothing_itself_is_marked_where_what_it_needs_does(make_study: Make) -> None:
    def unsafe(study: Study) -> dict[tuple[str, str], bool]:
        return (
            study.query("SELECT DISTINCT knob, value, durability FROM effects")
            .set_index(["knob", "value"])["durability"]
            .to_dict()
        )

    made = make_study(knobs=("ahead", "page", "window"), truth=TRUTH, repeats=4, devices=("hdd", "nvme"))
    assert not any(unsafe(made).values())
    risky = make_study(knobs=("sync", "flusher"))
    assert unsafe(risky)["flusher", "true"]
