"""Every mismatch rule fires, does not fire, and says when it cannot tell."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from generated_studies import RULES_DIR, Study, Truth

from knobscope.specs import RULES

Make = Callable[..., Study]
BLOCK_LEVEL = ("io_size", "io_parallelism", "io_sequentiality", "read_write_interference", "access_pattern")
ONE_CONFIGURATION = {"io_parallelism", "read_write_interference", "access_pattern"}  # that of the sentinel


def verdicts(findings: pd.DataFrame) -> dict[tuple[str, str], str]:
    return {(row.knob, row.value): row.verdict for row in findings.itertuples()}


def only_row(findings: pd.DataFrame) -> Any:
    assert len(findings) == 1
    return next(findings.itertuples())


def test_every_rule_has_a_header_that_explains_it() -> None:
    for name in RULES:
        text = (RULES_DIR / f"{name}.sql").read_text()
        assert text.startswith(f"-- {name}: ")
        for word in ("Source:", "Needs:", "Insufficient:", "Penalty"):
            assert word in text.split("WITH")[0]


@pytest.mark.parametrize("rule", RULES)
def test_no_mismatch_where_nothing_has_an_effect(make_study: Make, rule: str) -> None:
    findings = make_study(devices=("hdd", "nvme"), dbms=("simdb", "otherdb")).judge(rule)
    assert findings["verdict"].unique().tolist() == ["none"]
    assert findings["sentence"].str.endswith(".").all()
    assert all(json.loads(evidence) for evidence in findings["evidence"])


@pytest.mark.parametrize(
    ("tweak", "said"),
    [
        ({"monitor": "procfs", "lost_events": None}, "not watched"),
        ({"lost_events": 3}, "lost events in every run"),
        ({"unattributed_share": 0.7}, "70 % of the I/O on this shared device"),
        ({"status": "failed_start"}, "no run of the one-at-a-time round succeeded"),
    ],
)
def test_block_level_rules_say_when_they_are_blind(make_study: Make, tweak: dict[str, Any], said: str) -> None:
    """The effects are there: a rule that looked at throughput only would find something."""
    bad = Truth(throughput=-0.4, unaligned=0.5, cpu=0.5, write_run=0.4)
    study = make_study(
        truth={("page", "16"): bad}, depth_one=0.99, dedicated=False, tweak=lambda run: run.update(tweak)
    )
    for rule in BLOCK_LEVEL:
        findings = study.judge(rule)
        assert findings["verdict"].unique().tolist() == ["insufficient"]
        assert findings["sentence"].str.contains(said).all()


def test_what_a_dedicated_device_does_is_all_ours(make_study: Make) -> None:
    study = make_study(
        truth={("page", "16"): Truth(throughput=-0.4, unaligned=0.5)},
        tweak=lambda run: run.update(unattributed_share=0.7),
    )
    assert verdicts(study.judge("io_size"))["page", "16"] == "mismatch"


def test_a_few_lost_events_are_left_out_and_told(make_study: Make) -> None:
    study = make_study(
        truth={("page", "16"): Truth(throughput=-0.4, unaligned=0.5)},
        tweak=lambda run: run.update(lost_events=5 if run["position"] == 0 else 0),
    )
    row = study.judge("io_size").iloc[0]
    assert row["verdict"] == "mismatch"
    assert "2 of 24 runs lost events and are left out" in row["sentence"]


def test_one_block_is_insufficient(make_study: Make) -> None:
    """Two repeats are planned, one of them fails as a whole."""
    study = make_study(
        devices=("hdd", "nvme"),
        truth={("buffer", "32"): Truth(throughput=-0.4, unaligned=0.5, cpu=0.5, write_run=0.4)},
        tweak=lambda run: run.update(status="timeout") if run["repeat"] == 1 else None,
    )
    for rule in set(RULES) - ONE_CONFIGURATION - {"cross_check"}:  # which compares no runs
        findings = study.judge(rule)
        assert findings["verdict"].unique().tolist() == ["insufficient"]
        assert findings["sentence"].str.contains("one block only").all()


def test_intuition_judges_by_direction(make_study: Make) -> None:
    """buffer: raising is expected to be faster; sync: slower; pause: neither; page and ahead: nothing is expected."""
    study = make_study(
        truth={
            ("buffer", "32"): Truth(throughput=-0.2),
            ("buffer", "2"): Truth(throughput=-0.2),
            ("sync", "none"): Truth(throughput=0.3),
            ("sync", "normal"): Truth(throughput=-0.3),
            ("pause", "100"): Truth(throughput=0.2),
            ("page", "16"): Truth(throughput=-0.5),
        }
    )
    findings = study.judge("intuition")
    assert verdicts(findings) == {
        ("buffer", "32"): "mismatch",
        ("buffer", "2"): "none",
        ("sync", "none"): "none",
        ("sync", "normal"): "mismatch",
        ("pause", "100"): "mismatch",
        ("pause", "0"): "none",
    }
    row = findings[(findings["knob"] == "buffer") & (findings["value"] == "32")].iloc[0]
    assert row["sentence"].startswith("Raising buffer from 8 to 32 makes ycsb-a on nvme 1")
    assert "% slower (95 % interval 1" in row["sentence"]
    assert row["sentence"].endswith("although raising buffer is expected to make it faster.")
    assert row["effect_low"] < row["effect"] < row["effect_high"] < 0
    assert row["penalty"] == pytest.approx(1 / (1 + row["effect"]))
    assert findings.iloc[0]["verdict"] == "mismatch"
    assert findings.iloc[0]["value"] == "normal"  # the costliest on top


def test_intuition_ignores_what_is_too_small_to_matter(make_study: Make) -> None:
    study = make_study(truth={("buffer", "32"): Truth(throughput=-0.03)}, noise=0.001)
    rows = study.query("FROM effects WHERE metric = 'throughput_ops' AND value = '32'")
    assert rows["q_value"][0] < 1e-6
    assert verdicts(study.judge("intuition"))["buffer", "32"] == "none"


def test_tier_finds_opposite_and_unequal_effects(make_study: Make) -> None:
    study = make_study(
        devices=("hdd", "nvme"),
        truth={
            ("hdd", "page", "16"): Truth(throughput=0.12),
            ("nvme", "page", "16"): Truth(throughput=-0.12),
            ("hdd", "buffer", "32"): Truth(throughput=0.8),
            ("nvme", "buffer", "32"): Truth(throughput=0.2),
            ("hdd", "ahead", "true"): Truth(throughput=0.4),
            ("nvme", "ahead", "true"): Truth(throughput=0.4),
            ("hdd", "pause", "100"): Truth(throughput=-0.12),
        },
    )
    findings = study.judge("tier")
    found = verdicts(findings)
    assert {key for key, verdict in found.items() if verdict == "mismatch"} == {("page", "16"), ("buffer", "32")}
    assert set(found.values()) == {"mismatch", "none"}
    assert set(findings["device"]) == {"nvme"}
    rows = findings.set_index(["knob", "value"])
    assert rows.loc[("buffer", "32"), "penalty"] == pytest.approx(1.822, rel=0.08)
    assert rows.loc[("buffer", "32"), "effect"] == pytest.approx(-0.451, abs=0.05)
    assert "the higher tier falls behind by factor 1." in rows.loc[("buffer", "32"), "sentence"]
    assert "goes the other way" in rows.loc[("page", "16"), "sentence"]
    evidence = json.loads(rows.loc[("page", "16"), "evidence"])
    assert evidence["opposite"] is True
    assert evidence["lower_device"] == "hdd"


def test_tier_needs_the_effect_on_both_devices(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if run["device"] == "nvme" and not run["is_sentinel"]:
            run["status"] = "failed_start"

    findings = make_study(devices=("hdd", "nvme"), tweak=fail).judge("tier")
    assert findings["verdict"].unique().tolist() == ["insufficient"]
    assert findings["sentence"].str.contains("on nvme, it has no comparable run").all()


@pytest.mark.parametrize("devices", [("hdd",), ("nvme", "nvme2")])
def test_tier_without_a_second_tier(make_study: Make, devices: tuple[str, ...]) -> None:
    findings = make_study(devices=devices).judge("tier")
    assert findings["verdict"].unique().tolist() == ["insufficient"]
    assert len(findings) == 5 * len(devices)
    assert findings["sentence"].str.contains("no device of a tier other than").all()


def test_tier_compares_every_pair_of_tiers(make_study: Make) -> None:
    study = make_study(devices=("hdd", "nvme", "nvme2"), truth={("hdd", "page", "16"): Truth(throughput=0.6)})
    findings = study.judge("tier")
    assert len(findings) == 9 * 2
    mismatches = findings[findings["verdict"] == "mismatch"]
    assert set(mismatches[["device", "knob"]].itertuples(index=False, name=None)) == {
        ("nvme", "page"),
        ("nvme2", "page"),
    }


def test_io_size_needs_both_more_unaligned_writes_and_less_throughput(make_study: Make) -> None:
    study = make_study(
        truth={
            ("page", "16"): Truth(throughput=-0.3, unaligned=0.4),
            ("page", "1"): Truth(throughput=0.0, unaligned=0.4),
            ("buffer", "2"): Truth(throughput=-0.3, writes=0.7),  # raising it saves writes: no misfit of their size
            ("buffer", "32"): Truth(throughput=0.3, unaligned=0.3),
            ("ahead", "true"): Truth(throughput=-0.3, writes=0.7),  # raising it adds to their number
            ("sync", "none"): Truth(throughput=-0.3),
            ("pause", "100"): Truth(throughput=0.3, unaligned=-0.15),  # it is the default that misfits
        }
    )
    findings = study.judge("io_size")
    mismatches = {key for key, verdict in verdicts(findings).items() if verdict == "mismatch"}
    assert mismatches == {("page", "16"), ("ahead", "true"), ("pause", "100")}
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["penalty"] == pytest.approx(1.35, rel=0.05)
    assert "16384 bytes" in row["sentence"]
    assert " % of all, from 0." in row["sentence"]
    evidence = json.loads(row["evidence"])
    assert evidence["unaligned_share"]["after"] == pytest.approx(0.6, abs=0.03)
    assert evidence["unaligned_share"]["counts"] is True
    assert evidence["preferred_write_bytes"] == 16384
    assert evidence["slower"] == "value"
    default = findings[(findings["knob"] == "pause") & (findings["value"] == "100")].iloc[0]
    assert json.loads(default["evidence"])["slower"] == "baseline"


def test_io_size_without_a_device_profile(make_study: Make) -> None:
    findings = make_study(profiles=False).judge("io_size")
    assert findings["verdict"].unique().tolist() == ["insufficient"]
    assert findings["sentence"].str.contains("preferred write size is unknown").all()


def test_io_sequentiality_needs_all_three(make_study: Make) -> None:
    study = make_study(
        truth={
            ("ahead", "true"): Truth(throughput=-0.3, cpu=0.4, read_run=0.4),
            ("page", "16"): Truth(throughput=-0.3, cpu=0.4, write_run=0.4),
            ("page", "1"): Truth(throughput=0.3, cpu=-0.4, write_run=-0.2),  # the default pays for order in vain
            ("buffer", "2"): Truth(throughput=-0.3, cpu=0.4),
            ("buffer", "32"): Truth(throughput=0.3, cpu=0.4, write_run=0.4),
            ("sync", "none"): Truth(throughput=-0.3, write_run=0.4),
            ("pause", "100"): Truth(throughput=-0.3, cpu=0.4, write_run=-0.2),
        }
    )
    findings = study.judge("io_sequentiality")
    mismatches = {key for key, verdict in verdicts(findings).items() if verdict == "mismatch"}
    assert mismatches == {("ahead", "true"), ("page", "16"), ("page", "1")}
    row = findings.set_index(["knob", "value"]).loc[("ahead", "true")]
    assert "CPU per operation changes by factor 1." in row["sentence"]
    assert json.loads(row["evidence"])["read_share"]["counts"] is True


def test_io_parallelism_that_no_value_frees(make_study: Make) -> None:
    study = make_study(depth_one=0.99)
    row = only_row(study.judge("io_parallelism"))
    assert row.verdict == "mismatch"
    assert row.knob is None or pd.isna(row.knob)
    assert "one request in flight for 99 % of the busy time (80 % of all time)" in row.sentence
    assert "none of the 9 values of 5 knobs" in row.sentence
    assert row.penalty == pytest.approx(9)


def test_io_parallelism_names_the_value_that_frees_it(make_study: Make) -> None:
    study = make_study(
        depth_one=0.99,
        truth={
            ("buffer", "32"): Truth(throughput=0.4, depth_one=-0.5),
            ("page", "16"): Truth(throughput=0.1, depth_one=-0.5),
        },
    )
    row = only_row(study.judge("io_parallelism"))
    assert row.verdict == "none"
    assert "buffer = 32 frees it" in row.sentence
    evidence = json.loads(row.evidence)
    assert evidence["freed"] == 2
    assert evidence["freed_by"]["throughput_ratio"] == pytest.approx(1.49, rel=0.1)


@pytest.mark.parametrize(
    ("loads", "verdict"),
    [((4.0, 1.0, 1.0), "mismatch"), ((2.0, 1.0, 1.5), "none"), ((1.0, 1.0), "none")],
)
def test_io_parallelism_by_hardware_queues(make_study: Make, loads: tuple[float, ...], verdict: str) -> None:
    row = only_row(make_study(queue_loads=loads).judge("io_parallelism"))
    assert row.verdict == verdict
    if verdict == "mismatch":
        assert "the most loaded of 3 hardware queues carries 67 %" in row.sentence


@pytest.mark.parametrize(("busy", "told"), [(0.03, "3 %"), (0, "0 %")])
def test_io_parallelism_of_an_idle_device(make_study: Make, busy: float, told: str) -> None:
    row = only_row(make_study(busy=busy, depth_one=0.99).judge("io_parallelism"))
    assert row.verdict == "insufficient"
    assert f"busy for {told} of the time only" in row.sentence


def test_io_parallelism_without_another_value(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if not run["is_sentinel"]:
            run["status"] = "failed_start"

    row = only_row(make_study(depth_one=0.99, tweak=fail).judge("io_parallelism"))
    assert row.verdict == "insufficient"
    assert "no value of a knob was measured" in row.sentence
