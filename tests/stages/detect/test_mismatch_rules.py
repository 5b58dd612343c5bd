"""Every mismatch rule fires, does not fire, and says when it cannot tell."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from generated_studies import Study, Truth, only_row, verdicts

from knobscope.specs import SHIPPED_RULES, read_rule, read_shipped_rule, shipped_rules
from knobscope.stages.detect import VIEWS, build_database
from knobscope.tables import TABLES

Make = Callable[..., Study]
Judge = Callable[..., pd.DataFrame]  # as fixture `judge_one`
RULES = shipped_rules()
BLOCK_LEVEL = (
    "default_profile",
    "flush",
    "io_size",
    "io_parallelism",
    "io_sequentiality",
    "read_write_interference",
    "access_pattern",
)
ONE_CONFIGURATION = {
    "default_profile",
    "io_parallelism",
    "read_write_interference",
    "access_pattern",
}  # that of the sentinel


@pytest.mark.parametrize("rule", RULES)
def test_every_rule_says_what_it_claims_and_what_it_cannot_see(rule: str) -> None:
    header = read_rule(SHIPPED_RULES / rule).header
    assert {"", "Source", "Needs", "Mismatch", "None", "Insufficient", "Penalty", "Cannot see"} == set(header)


@pytest.mark.parametrize("rule", RULES)
def test_queries_hold_codes_and_no_prose(rule: str) -> None:
    """A text in a query is a name or a code: one word of letters, digits and underscores."""
    text = read_shipped_rule(rule).query_file.read_text()
    query = re.sub(r"--.*", "", text)
    words = [word for word in re.findall(r"'((?:[^']|'')*)'", query) if not re.fullmatch(r"-?[A-Za-z0-9_]+", word)]
    assert words == []
    assert not re.search(r"\|\||\bformat\(|\bprintf\(|\bconcat", query)


#: What macros ask, by their name.
OF_MACROS = {
    "effects_on": ("effects",),
    "rates_of": ("effects",),
    "waited_for": ("effects", "cases"),
    "waiting_by_default": ("effects", "cases"),
}


@pytest.mark.parametrize("rule", RULES)
def test_a_rule_needs_what_its_query_reads(rule: str) -> None:
    read = read_shipped_rule(rule)
    query = re.sub(r"--.*", "", read.query_file.read_text())
    tables = {*TABLES, *VIEWS, "earlier_findings"} - {"runs", "findings"}
    from_macros = {table for macro, tables in OF_MACROS.items() if f"{macro}(" in query for table in tables}
    found = {name for name in tables if re.search(rf"\b(FROM|JOIN) {name}\b", query)}
    assert found | from_macros == set(read.about.needs)
    thresholds = set(re.findall(r"getvariable\('(\w+)'\)", query)) - {"fdr", "min_effect"}
    assert thresholds == set(read.about.thresholds)


@pytest.mark.parametrize("rule", RULES)
def test_no_mismatch_where_nothing_has_an_effect(make_study: Make, rule: str) -> None:
    steady: dict[str, Any] = {"noise": 0.004, "block_noise": 0.004, "repeats": 3}
    findings = make_study(devices=("hdd", "nvme"), dbms=("simdb", "otherdb"), **steady).judge(rule)
    assert findings["verdict"].unique().tolist() == ["none"]
    assert findings["sentence"].str.endswith(".").all()
    assert all(json.loads(evidence) for evidence in findings["evidence"])


BLIND = [
    ({"monitor": "procfs", "lost_events": None}, "not monitored"),
    ({"lost_events": 3}, "lost events in every run"),
    ({"unattributed_share": 0.7}, "70 % of the reads and writes on this shared device"),
    ({"status": "failed_start"}, "there is no successful run that changes one knob alone"),
]


@pytest.mark.parametrize(("columns", "said"), BLIND)
def test_block_level_rules_say_when_they_are_blind(judge_one: Judge, columns: dict[str, Any], said: str) -> None:
    """The effects are there: a rule that looked at throughput only would find something."""
    bad = Truth(throughput=-0.4, unaligned=0.5, cpu=0.5, write_run=0.4)
    common = {"truth": {("page", "16"): bad}, "depth_one": 0.99, "dedicated": False}
    cases = [{"columns": one} for one, _ in BLIND]
    for rule in BLOCK_LEVEL:
        findings = judge_one(rule, cases, {"columns": columns}, **common)
        assert findings["verdict"].unique().tolist() == ["insufficient"]
        assert findings["sentence"].str.contains(said).all()


def test_what_a_dedicated_device_does_is_all_ours(make_study: Make) -> None:
    study = make_study(
        truth={("page", "16"): Truth(throughput=-0.4, unaligned=0.5)},
        columns={"unattributed_share": 0.7},
        unit_us=500.0,
    )
    assert verdicts(study.judge("io_size"))["page", "16"] == "mismatch"


def test_a_few_lost_events_are_left_out_and_reported(make_study: Make) -> None:
    study = make_study(
        truth={("page", "16"): Truth(throughput=-0.4, unaligned=0.5)},
        tweak=lambda run: run.update(lost_events=5 if run["position"] == 0 else 0),
        unit_us=500.0,
    )
    row = study.judge("io_size").iloc[0]
    assert row["verdict"] == "mismatch"
    assert "2 of 24 runs excluded for lost events" in row["sentence"]


FOREIGN = [(0.03, "mismatch", ""), (0.2, "mismatch", "20 %"), (0.6, "", "60 %")]


@pytest.mark.parametrize(("share", "verdict", "said"), FOREIGN)
def test_io_of_unknown_origin_is_reported_where_it_could_matter(
    judge_one: Judge, share: float, verdict: str, said: str
) -> None:
    common = {"truth": {("page", "16"): Truth(throughput=-0.4, unaligned=0.5)}, "dedicated": False, "unit_us": 500.0}
    cases = [{"columns": {"unattributed_share": one}} for one, *_ in FOREIGN]
    row = judge_one("io_size", cases, {"columns": {"unattributed_share": share}}, **common).iloc[0]
    assert row["verdict"] == (verdict or "insufficient")
    assert ("could not be attributed" in row["sentence"]) == bool(said)
    assert said in row["sentence"]


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
        assert findings["sentence"].str.contains("only one block").all()


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
        },
        noise=0.008,
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
    assert row["sentence"].endswith(", although raising buffer is expected to make it faster.")
    said = findings.set_index(["knob", "value"])["sentence"]
    assert said["sync", "normal"].endswith(", although full is expected to be slower than normal.")
    assert said["pause", "100"].endswith(", although pause is expected to make no difference.")
    assert row["effect_low"] < row["effect"] < row["effect_high"] < 0
    assert row["penalty"] == pytest.approx(1 / (1 + row["effect"]))
    assert findings.iloc[0]["verdict"] == "mismatch"
    assert findings.iloc[0]["value"] == "normal"  # the costliest on top


def test_intuition_ignores_what_is_too_small_to_matter(make_study: Make) -> None:
    study = make_study(truth={("buffer", "32"): Truth(throughput=-0.03)}, noise=0.001)
    rows = study.query("FROM effects WHERE metric = 'throughput_ops' AND value = '32'")
    assert rows["q_value"][0] < 1e-6
    assert verdicts(study.judge("intuition"))["buffer", "32"] == "none"


def test_tier_finds_opposite_effects_and_those_that_grow(make_study: Make) -> None:
    study = make_study(
        devices=("hdd", "nvme"),
        truth={
            ("hdd", "page", "16"): Truth(throughput=0.12),
            ("nvme", "page", "16"): Truth(throughput=-0.12),
            ("hdd", "page", "1"): Truth(throughput=-0.2),
            ("nvme", "page", "1"): Truth(throughput=-0.8),
            ("hdd", "buffer", "32"): Truth(throughput=0.8),
            ("nvme", "buffer", "32"): Truth(throughput=0.2),
            ("nvme", "buffer", "2"): Truth(throughput=-0.5),
            ("hdd", "ahead", "true"): Truth(throughput=0.4),
            ("nvme", "ahead", "true"): Truth(throughput=0.4),
            ("hdd", "pause", "100"): Truth(throughput=-0.12),
        },
        noise=0.008,
    )
    findings = study.judge("tier")
    found = verdicts(findings)
    mismatches = {key for key, verdict in found.items() if verdict == "mismatch"}
    assert mismatches == {("page", "16"), ("page", "1"), ("buffer", "2")}
    assert set(found.values()) == {"mismatch", "none"}
    assert set(findings["device"]) == {"nvme"}
    rows = findings.set_index(["knob", "value"])
    assert rows.loc[("page", "1"), "penalty"] == pytest.approx(1.822, rel=0.08)
    assert rows.loc[("page", "1"), "effect"] == pytest.approx(-0.451, abs=0.05)
    assert "the higher tier is 4" in rows.loc[("page", "1"), "sentence"]
    assert (
        "reversed on the higher tier. Relative to the default on each, the higher tier is 2"
        in rows.loc[("page", "16"), "sentence"]
    )
    assert (
        "The effect is smaller on the higher tier, which by itself is no mismatch: 4"
        in rows.loc[("buffer", "32"), "sentence"]
    )
    evidence = json.loads(rows.loc[("page", "16"), "evidence"])
    assert evidence["opposite"] is True
    assert evidence["lower_device"] == "hdd"


def test_tier_asks_workers_to_do_as_much_on_a_device_that_takes_more(make_study: Make) -> None:
    truth = {("hdd", "workers", "8"): Truth(throughput=0.8)}
    study = make_study(devices=("hdd", "nvme"), truth=truth, noise=0.008, knobs=("workers", "buffer"))
    assert verdicts(study.judge("tier"))["workers", "8"] == "mismatch"


def test_tier_cannot_tell_where_an_effect_that_fades_may_have_turned_round(make_study: Make) -> None:
    truth = {("hdd", "page", "16"): Truth(throughput=2.0), ("nvme", "page", "16"): Truth(throughput=-0.1)}
    study = make_study(devices=("hdd", "nvme"), truth=truth, noise=0.25)
    rows = study.judge("tier").set_index(["knob", "value"])
    assert rows.loc[("page", "16"), "verdict"] == "insufficient"
    sentence = rows.loc[("page", "16"), "sentence"]
    assert re.search(
        r"smaller on the higher tier: [^;]* behind \(95 % interval [^;]*\); whether it is reversed", sentence
    )
    assert "whether the tiers differ" not in sentence


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
    assert len(findings) == len(devices)  # said once per case
    assert findings["sentence"].str.contains("no device of a second tier").all()


def test_tiers_are_not_ranked_without_profiles(make_study: Make, tmp_path: Path) -> None:
    study = make_study(devices=("hdd", "nvme"))
    database = tmp_path / "study.duckdb"
    build_database(replace(study.files, devices=()), study.specs, database)
    unranked = Study(study.specs, study.files, database)
    for rule in ("tier", "slower_tier"):
        findings = unranked.judge(rule)
        assert findings["verdict"].tolist() == ["insufficient"] * 2
        assert findings["sentence"].str.contains("a device of the study has no profile, so which tier is higher").all()


def test_tier_compares_every_pair_of_tiers(make_study: Make) -> None:
    gain = Truth(throughput=0.6)
    study = make_study(
        devices=("hdd", "nvme", "nvme2"), truth={("nvme", "page", "16"): gain, ("nvme2", "page", "16"): gain}
    )
    findings = study.judge("tier")
    assert len(findings) == 9 * 2
    mismatches = findings[findings["verdict"] == "mismatch"]
    assert set(mismatches[["device", "knob"]].itertuples(index=False, name=None)) == {
        ("nvme", "page"),
        ("nvme2", "page"),
    }


def test_slower_tier_says_once_that_the_default_is_slower(make_study: Make) -> None:
    study = make_study(
        devices=("hdd", "nvme"),
        repeats=3,
        noise=0.01,
        block_noise=0.01,
        levels={"nvme": -0.4},
        truth={("nvme", "page", "16"): Truth(throughput=0.6)},
    )
    findings = study.judge("slower_tier").set_index("knob")
    default = findings[findings.index.isna()].iloc[0]
    assert default["verdict"] == "mismatch"
    assert default["penalty"] == pytest.approx(1.49, rel=0.05)
    assert default["sentence"].startswith(
        "ycsb-a with the default configuration on nvme, the higher tier, compared with"
    )
    assert "slower (95 % interval" in default["sentence"]
    others = findings[findings.index.notna()]
    assert set(others["verdict"]) == {"none"}
    freed = others[(others.index == "page") & (others["value"] == "16")].iloc[0]
    assert "The default configuration is slower there, too." not in freed["sentence"]
    assert others["sentence"].str.endswith("The default configuration is slower there, too.").sum() == len(others) - 1


def test_slower_tier_names_the_value_that_makes_it_slower(make_study: Make) -> None:
    study = make_study(
        devices=("hdd", "nvme"),
        repeats=3,
        noise=0.01,
        block_noise=0.01,
        levels={"nvme": 0.3},
        truth={("nvme", "page", "16"): Truth(throughput=-0.6)},
    )
    found = verdicts(study.judge("slower_tier"))
    assert {key for key, verdict in found.items() if verdict == "mismatch"} == {("page", "16")}
    assert set(found.values()) == {"mismatch", "none"}


def test_slower_tier_sees_what_only_the_latency_tells(make_study: Make) -> None:
    def wait(run: dict[str, Any]) -> None:
        if run["device"] == "nvme":
            run["latency_p95_us"] *= 1.6

    study = make_study(devices=("hdd", "nvme"), repeats=3, noise=0.01, block_noise=0.01, tweak=wait)
    findings = study.judge("slower_tier")
    default = findings[findings["knob"].isna()].iloc[0]
    assert default["verdict"] == "mismatch"
    assert default["penalty"] == pytest.approx(1.6, rel=0.05)
    assert json.loads(default["evidence"])["slower"] is False
    assert pd.isna(default["effect"])  # that on throughput is none
    assert re.search("95th percentile of latency: (59|60|61) % longer", default["sentence"])


def test_slower_tier_cannot_tell_one_block_or_one_tier(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if run["block_id"].endswith("-1"):
            run["status"] = "failed_start"

    one_block = make_study(devices=("hdd", "nvme"), tweak=fail).judge("slower_tier")
    assert one_block["verdict"].unique().tolist() == ["insufficient"]
    assert one_block["sentence"].str.contains("in only one block").all()
    one_tier = only_row(make_study(devices=("hdd",)).judge("slower_tier"))
    assert one_tier.verdict == "insufficient"
    assert "no device of a second tier" in one_tier.sentence


@pytest.mark.long
def test_slower_tier_is_wrong_in_few_studies_without_truth(make_study: Make) -> None:
    """Blocks differ by 10 %, which is no property of the device."""
    alarms = 0
    for seed in range(10):
        findings = make_study(devices=("hdd", "nvme"), repeats=3, seed=seed).judge("slower_tier")
        alarms += int((findings["verdict"] == "mismatch").any())
    assert alarms <= 1
