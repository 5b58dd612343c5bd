"""What turns round is stated, and several causes of one effect add up to no more than all of it."""

import json
from collections.abc import Callable
from typing import Any, cast

import duckdb
from generated_studies import Study, Truth

from knobscope.stages.detect.interactions import read_interactions
from knobscope.stages.detect.shares import add_shares, leave_open_excluded
from knobscope.tables.detection import FindingRow

Make = Callable[..., Study]


def told(study: Study) -> dict[tuple[Any, ...], str]:
    with duckdb.connect(str(study.database), read_only=True) as connection:
        connection.execute("SET VARIABLE fdr = 0.05; SET VARIABLE min_effect = 0.05")
        return {(row[1], row[4]): text for row, text in read_interactions(connection).items()}


def test_opposite_effects_on_two_devices_are_stated(make_study: Make) -> None:
    truth = {
        ("nvme", "page", "16"): Truth(throughput=0.3),
        ("nvme2", "page", "16"): Truth(throughput=-0.3),
        ("nvme", "page", "1"): Truth(throughput=-0.5),
        ("nvme2", "page", "1"): Truth(throughput=-0.2),  # less, and not the other way
    }
    said = told(make_study(devices=("nvme", "nvme2"), truth=truth, knobs=("page",)))
    assert set(said) == {("nvme", "16"), ("nvme2", "16")}
    assert "ycsb-a on nvme2 becomes 2" in said["nvme", "16"]
    assert "% slower" in said["nvme", "16"]


def test_an_effect_that_turns_round_within_the_window_is_stated(make_study: Make) -> None:
    def halve(run: dict[str, Any]) -> None:
        noise = 1 + 0.01 * (run["position"] % 3)
        run["window_halves"] = noise * (1.0 if run["is_sentinel"] else 0.8)

    study, large = (
        make_study(truth={("page", "16"): Truth(throughput=effect)}, knobs=("page",), repeats=4, tweak=halve)
        for effect in (-0.3, 4.0)
    )
    said = told(study)
    assert "is 2" in said["nvme", "16"] and "slower in the second half than in the first" in said["nvme", "16"]
    assert ("nvme", "16") not in told(large)


def finding(rule: str, cause: str, **share: Any) -> FindingRow:
    row = {"rule": rule, "dbms": "d", "device": "v", "workload": "w", "knob": "k", "value": "1", "cause": cause}
    row |= {"verdict": "mismatch", "evidence": json.dumps({"share": share}), "confirmed": "not_tested"}
    return cast("FindingRow", {**row, "sentence": "It is slower."})


def test_shares_of_several_causes_are_stated_together() -> None:
    findings = [
        finding("flush", "flush", sure=0.5, high=0.7, low=0.4, by_time=False),
        finding("io_size", "write_size", sure=0.25, high=0.9, low=0.2, by_time=True),
        {**finding("flush", "flush", sure=0.5, high=0.7, low=0.4, by_time=False), "value": "2"},
    ]
    for _ in range(2):
        add_shares(findings, set())
    first, second, alone = (" ".join(row["sentence"].split()) for row in findings)
    assert first == second
    assert first == "It is slower. Shares of the difference: flushes 60 %, filling units 25 %, not explained 15 %."
    assert alone == "It is slower."
    add_shares(findings, {("d", "v", "w", "k", "1")})
    assert {row["sentence"] for row in findings} == {"It is slower."}


def test_words_of_a_rule_that_read_like_stated_shares_are_its_own() -> None:
    own = "It is slower. Shares of the difference: reads 90 %, not explained 10 %."
    findings = [{**finding("own", "own", sure=0.5, high=0.7), "sentence": own}]
    add_shares(findings, set())
    assert [row["sentence"] for row in findings] == [own]


def test_what_flushes_were_to_explain_is_open_where_an_experiment_refuted_that() -> None:
    def judge(gone: set[tuple[str, ...]], **evidence: Any) -> str:
        flush, other = finding("flush", "flush"), finding("io_size", "write_size")
        other |= {"verdict": "none", "evidence": json.dumps(evidence)}
        leave_open_excluded([{**flush, "confirmed": "no"}, other], gone)
        assert other["sentence"].endswith("remains open.") == (other["verdict"] == "insufficient")
        return other["verdict"]

    assert judge(set(), by_flushes=True) == judge(set(), explained_by="flushes") == "insufficient"
    assert judge(set(), explained_by="time") == "none"
    assert judge({("d", "v", "w", "k", "1")}, by_flushes=True) == "none"  # of an effect that is gone


def test_shares_never_exceed_the_whole() -> None:
    findings = [finding(rule, rule, sure=0.9, high=1.2, low=0.8, by_time=False) for rule in ("flush", "own")]
    for _ in range(2):
        add_shares(findings, set())
    shares = "flushes 50 %, own 50 %, not explained 0 %."
    assert findings[0]["sentence"] == f"It is slower. Shares of the difference, scaled to a whole: {shares}"


def test_shares_by_counts_yield_to_experiments() -> None:
    both = [
        finding(rule, rule, sure=sure, high=1.0, low=0.0, by_time=True)
        for rule, sure in (("flush", 0.9995), ("own", 0))
    ]
    refuted = [both[0], cast("FindingRow", {**both[1], "confirmed": "no"})]
    add_shares(both, {("d", "v", "w", "k", "1")})
    add_shares(refuted, set())
    assert {row["sentence"] for row in [*both, *refuted]} == {"It is slower."}
    add_shares(both, {("d", "v", "w", "k", "2")})
    assert all("Shares of the difference" in row["sentence"] for row in both)
    for row in both:
        row["sentence"] = f"Refuted: it is not. Original finding: {row['sentence']} More."
    add_shares(both, {("d", "v", "w", "k", "1")})
    assert {row["sentence"] for row in both} == {"Refuted: it is not. Original finding: It is slower. More."}
