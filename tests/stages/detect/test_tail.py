"""Rule tail: high percentiles that move while throughput does not, in studies with known truth."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from generated_studies import Study, StudyMaker, Truth, verdicts

from knobscope.stages.detect import build_database

Make = Callable[..., Study]
#: A run in twenty stalls: its slowest operations take several times as long, whatever its setting is.
NOISY: dict[str, Any] = {"noise": 0.015, "tail_noise": 0.1, "stalls": 0.05, "repeats": 5}


def test_a_tail_that_throughput_does_not_show_is_a_mismatch(make_study: Make) -> None:
    study = make_study(
        truth={
            ("page", "16"): Truth(tail=1.8),  # p99 six times as long, p95 2.5 times
            ("buffer", "2"): Truth(tail=-0.9),  # it is the default whose tail is longer
            ("ahead", "true"): Truth(throughput=-0.5, tail=1.0),  # for other rules: throughput itself falls
            ("pause", "100"): Truth(tail=0.05),  # too little to matter
        },
        repeats=5,
        noise=0.015,
    )
    findings = study.judge("tail").set_index(["knob", "value"])
    assert {key for key, verdict in verdicts(study.judge("tail")).items() if verdict == "mismatch"} == {
        ("page", "16"),
        ("buffer", "2"),
    }
    row = findings.loc[("page", "16")]
    assert row["penalty"] == pytest.approx(6, rel=0.1)
    assert "makes the 99th percentile of latency of ycsb-a on nvme 6" in row["sentence"]
    assert "while the average shows nothing of it" in row["sentence"]
    assert json.loads(row["evidence"])["slower"] == "value"
    assert row["cause"] is None
    assert json.loads(findings.loc[("buffer", "2"), "evidence"])["slower"] == "baseline"
    assert findings.loc[("ahead", "true"), "verdict"] == "none"
    assert "changes throughput itself" in findings.loc[("ahead", "true"), "sentence"]
    assert findings.loc[("pause", "100"), "verdict"] == "none"


def test_a_single_stalled_run_is_no_tail(make_study: Make) -> None:
    stalled: list[str] = []

    def stall(run: dict[str, Any]) -> None:
        if not run["is_sentinel"] and run["repeat"] == 0:
            stalled.append(run["run_id"])
            run["latency_p99_us"] *= 1000

    findings = make_study(repeats=5, noise=0.015, tweak=stall).judge("tail")
    assert stalled
    assert "mismatch" not in set(findings["verdict"])


def test_times_told_agree_with_how_many_times_longer_they_are(make_study: Make) -> None:
    """A stalled run moves the means of both sides, but neither their medians nor the median of their ratios."""

    def stall(run: dict[str, Any]) -> None:
        if not run["is_sentinel"] and run["repeat"] == 0:
            run["latency_p99_us"] *= 1000

    study = make_study(truth={("page", "16"): Truth(tail=1.8)}, repeats=5, noise=0.015, tweak=stall)
    row = study.judge("tail").set_index(["knob", "value"]).loc[("page", "16")]
    told = json.loads(row["evidence"])["latency_us"]
    assert told["after"] / told["before"] == pytest.approx(row["penalty"], rel=0.2)


def test_throughput_that_is_not_known_well_enough_leaves_it_open(make_study: Make) -> None:
    study = make_study(truth={("page", "16"): Truth(tail=0.7)}, noise=0.25, repeats=5, knobs=("page", "pause"))
    row = study.judge("tail").set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "insufficient", row["sentence"]


def test_runs_without_percentiles_cannot_be_judged(make_study: Make) -> None:
    study = make_study(columns={"latency_p95_us": None, "latency_p99_us": None})
    findings = study.judge("tail")
    assert findings["verdict"].unique().tolist() == ["insufficient"]
    assert findings["sentence"].str.contains("no percentiles of latency are known of all operations of its runs").all()


def test_too_few_runs_have_no_interval(make_study: Make) -> None:
    """With one run of a value and a few of the default in each of two sessions, chance alone may order them so."""
    study = make_study(truth={("page", "16"): Truth(tail=1.8)}, repeats=2, noise=0.015)
    behind = study.query("SELECT low, high, estimate FROM tails_behind")
    assert behind["estimate"].notna().all()
    assert behind[["low", "high"]].isna().all(axis=None)
    findings = study.judge("tail").set_index(["knob", "value"])
    row = findings.loc[("page", "16")]
    assert row["verdict"] == "insufficient"
    assert "too few runs to tell an effect from noise" in row["sentence"]


def judge_devices(root: Path, truth: dict[tuple[str, ...], Truth], seed: int) -> pd.DataFrame:
    """Return the findings of a study of several devices, each a case of its own with noise of its own."""
    maker = StudyMaker(root, devices=[f"nvme-{number}" for number in range(10)], truth=truth, seed=seed, **NOISY)
    specs = maker.specs()
    files, database = maker.files(specs), root / "study.duckdb"
    build_database(files, specs, database)
    return Study(specs, files, database).judge("tail")


@pytest.mark.long
def test_rates_of_false_and_of_missed_tails(tmp_path: Path) -> None:
    """At most one false alarm in 200 comparisons of equal settings; 85 % of tails of 2.7x are found."""
    equal = pd.concat([judge_devices(tmp_path / f"equal-{seed}", {}, seed) for seed in range(12)])
    real = {("page", "16"): Truth(tail=1.0), ("buffer", "2"): Truth(tail=-1.0)}
    judged = pd.concat([judge_devices(tmp_path / f"real-{seed}", real, 100 + seed) for seed in range(6)])
    is_real = pd.Series([key in real for key in zip(judged["knob"], judged["value"], strict=True)], judged.index)
    parts = {"equal": equal, "real": judged[is_real], "next to real ones": judged[~is_real]}
    counts = {name: part["verdict"].value_counts().to_dict() for name, part in parts.items()}
    print(counts)
    rates = {name: (part["verdict"] == "mismatch").mean() for name, part in parts.items()}
    assert len(equal) >= 1000
    assert rates["equal"] <= 1 / 200, counts
    assert rates["real"] >= 0.85, counts
    assert rates["next to real ones"] <= 1 / 100, counts


def test_what_the_device_did_is_mentioned_and_called_no_cause(make_study: Make) -> None:
    """Flushes that take longer in the runs with the longer tail, and writes that come in bursts."""
    study = make_study(truth={("page", "16"): Truth(tail=1.8, read_us=2.0)}, repeats=5, noise=0.015, reads_per_op=1.0)
    row = study.judge("tail").set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "mismatch"
    assert "99 % of reads end within 1.5 ms instead of 2" in row["sentence"]
    assert "does not prove what makes them slow" in row["sentence"]
    plain = make_study(truth={("page", "16"): Truth(tail=1.8)}, repeats=5, noise=0.015, reads_per_op=1.0)
    row = plain.judge("tail").set_index(["knob", "value"]).loc[("page", "16")]
    assert "The I/O profile shows no difference that goes with it" in row["sentence"]
    blind = make_study(truth={("page", "16"): Truth(tail=1.8)}, repeats=5, noise=0.015, columns={"monitor": "procfs"})
    row = blind.judge("tail").set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "mismatch"
    assert "What the device did differently is unknown: the block layer was not monitored" in row["sentence"]
