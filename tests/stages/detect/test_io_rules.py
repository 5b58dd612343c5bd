"""Rules that judge I/O by the block layer fire, do not fire, and say when they cannot tell."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from generated_studies import Study, Truth, only_row, verdicts

from knobscope.specs import read_shipped_rule
from knobscope.stages.imitate.findings import restate_gain
from knobscope.text.sentences import Sentences

Make = Callable[..., Study]
Judge = Callable[..., pd.DataFrame]  # as fixture `judge_one`


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
        },
        unit_us=500.0,
    )
    findings = study.judge("io_size")
    mismatches = {key for key, verdict in verdicts(findings).items() if verdict == "mismatch"}
    assert mismatches == {("page", "16"), ("ahead", "true"), ("pause", "100")}
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["penalty"] == pytest.approx(1.35, rel=0.05)
    assert "fill the device's units of 16 KiB only in part goes from 20 % to 6" in row["sentence"]
    assert "their number per operation goes from 0.4 to 1" in row["sentence"]
    evidence = json.loads(row["evidence"])
    assert evidence["unaligned_share"]["after"] == pytest.approx(0.6, abs=0.03)
    assert evidence["unaligned_share"]["counts"] is True
    assert evidence["write_unit_bytes"] == 16384
    assert evidence["slower"] == "value"
    default = findings[(findings["knob"] == "pause") & (findings["value"] == "100")].iloc[0]
    assert json.loads(default["evidence"])["slower"] == "baseline"


@pytest.mark.slow
def test_a_value_that_is_neither_above_nor_below_the_default_raises_nothing(judge_one: Judge) -> None:
    """pause: 0 is special (off). Fewer operations with more writes each count only where the knob is known to go up."""
    truths = (
        Truth(throughput=-0.3, writes=0.7),
        Truth(throughput=-0.3, unaligned=0.4),
        Truth(throughput=-0.3, writes=-0.7),
    )
    cases = [{"truth": {("pause", "0"): truth}} for truth in truths]
    by_number, by_share, harmless = (judge_one("io_size", cases, case, unit_us=500.0) for case in cases)
    row = by_number.set_index(["knob", "value"]).loc[("pause", "0")]
    assert row["verdict"] == "insufficient"
    assert "this value is neither above nor below the default" in row["sentence"]
    assert "mismatch" not in set(by_number["verdict"])
    assert verdicts(by_share)["pause", "0"] == "mismatch"  # for a share it does not matter which end is the default
    assert verdicts(harmless)["pause", "0"] == "none"


WITHOUT_UNIT: list[tuple[dict[str, Any], str]] = [
    ({"profiles": False}, "its write unit is unknown"),
    ({"preferred": None}, "the device shows no write unit"),
]


@pytest.mark.parametrize(("made", "said"), WITHOUT_UNIT)
def test_io_size_on_a_device_whose_unit_nobody_knows(judge_one: Judge, made: dict[str, Any], said: str) -> None:
    findings = judge_one("io_size", [one for one, _ in WITHOUT_UNIT], made)
    assert findings["verdict"].unique().tolist() == ["insufficient"]
    assert findings["sentence"].str.contains(said).all()


#: An operation of the sentinel takes 1,000 us. What is slower by so much, by flushes of 1,000 us each, or not.
FLUSHED: list[tuple[Any, ...]] = [
    (Truth(throughput=-0.7, flushes=1.0), 1000, "mismatch", "goes from 0.2 to 1.2"),
    (Truth(throughput=-0.7, flushes=0.6), 1000, "mismatch", "of the difference of"),
    (Truth(throughput=0.6, flushes=-0.2), 2000, "mismatch", "goes from 0.2 to 0,"),  # the default flushes more
    (Truth(throughput=-0.7, flushes=1.0, writes=1.0), 1000, "mismatch", "Bytes written per operation: 2.7x more"),
    (Truth(throughput=-0.7, flushes=1.0), 50, "insufficient", "but an fsync also waits"),  # maybe a slow fsync
    (Truth(throughput=-0.7, flushes=0.1), 1000, "insufficient", "but an fsync also waits"),  # a tenth of the difference
    (Truth(throughput=-0.7), 1000, "none", "stays at 0.2"),
    (Truth(throughput=0.7, flushes=1.0), 1000, "none", "no loss"),  # it flushes more and is faster
    (Truth(throughput=-0.7, unaligned=0.5, writes=1.0), 1000, "none", "no loss"),  # larger writes alone
    (Truth(throughput=-0.7, cpu=1.0, write_run=0.4), 1000, "none", "no loss"),
    (Truth(flushes=1.0), 1000, "none", "no loss"),  # more flushes that cost nothing
    (Truth(throughput=6.0, flushes=-0.2), 4500, "mismatch", "goes from 0.2 to 0,"),  # none are none, however fast
]


@pytest.mark.parametrize(("truth", "flush_us", "verdict", "said"), FLUSHED)
def test_flush_needs_flushes_that_make_up_the_difference(
    judge_one: Judge, truth: Truth, flush_us: float, verdict: str, said: str
) -> None:
    cases = [{"truth": {("page", "16"): one}, "flush_us": us} for one, us, *_ in FLUSHED]
    case = {"truth": {("page", "16"): truth}, "flush_us": flush_us}
    findings = judge_one("flush", cases, case, noise=0.006, knobs=("page",))
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == verdict, row["sentence"]
    assert said in row["sentence"]


def test_flush_says_which_setting_risks_data_and_when_it_cannot_tell(judge_one: Judge) -> None:
    cases: list[dict[str, Any]] = [
        {"truth": {("sync", "none"): Truth(throughput=1.0, flushes=-0.7)}, "flushes": 0.7, "noise": 0.006},
        {"truth": {("page", "16"): Truth(throughput=-0.7, flushes=0.5)}, "noise": 0.3},
        {"profiles": False},
    ]
    risky, unsure, blind = (judge_one("flush", cases, case) for case in cases)
    row = risky.set_index(["knob", "value"]).loc[("sync", "none")]
    assert row["verdict"] == "mismatch"
    assert row["sentence"].endswith("The faster setting may lose committed data.")
    assert "mismatch" not in set(unsure["verdict"])
    assert blind["verdict"].unique().tolist() == ["insufficient"]
    assert blind["sentence"].str.contains("the duration of a flush is unknown").all()


SIZED: list[tuple[Any, ...]] = [
    (Truth(throughput=-0.4, unaligned=0.4), "mismatch", "goes from 20 % to"),
    (
        Truth(throughput=-0.4, writes=1.2),
        "mismatch",
        "their number per operation",
    ),  # and 2.2 times as many per second
    (
        Truth(throughput=-0.4, writes=0.4),
        "insufficient",
        "no more such writes per second",
    ),  # in the background, or all there are
    (Truth(throughput=-0.4), "none", "no loss"),
    (Truth(throughput=0.4, unaligned=0.4), "none", "no loss"),  # faster, in spite of it
    (Truth(throughput=0.4, unaligned=-0.15), "mismatch", "goes from 20 % to"),  # the default is to blame
    (Truth(unaligned=0.4), "none", "no loss"),  # costs nothing
    (Truth(throughput=-0.4, flushes=1.0), "none", "no loss"),  # commits wait, whatever they write
    (Truth(throughput=-0.4, cpu=0.5), "none", "no loss"),
    (Truth(throughput=-0.4, writes=-0.7), "none", "too few to be its cause"),  # fewer such writes
]


@pytest.mark.parametrize(("truth", "verdict", "said"), SIZED)
def test_io_size_needs_units_filled_in_part(judge_one: Judge, truth: Truth, verdict: str, said: str) -> None:
    cases = [{"truth": {("page", "16"): one}} for one, *_ in SIZED]
    case = {"truth": {("page", "16"): truth}}
    findings = judge_one(
        "io_size", cases, case, noise=0.006, share_noise=0.003, repeats=6, knobs=("page",), unit_us=500.0
    )
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == verdict, row["sentence"]
    assert said in row["sentence"]


#: An operation of the sentinel takes 1,000 us, 800 us of it on a processor.
ORDERED: list[tuple[Any, ...]] = [
    (Truth(throughput=-0.4, cpu=0.4, write_run=0.4), "mismatch", "CPU time is spent"),
    (Truth(throughput=-0.4, cpu=0.4, read_run=0.4), "mismatch", "the sequential share of reads goes"),
    (Truth(throughput=0.4, cpu=-0.4, write_run=-0.2), "mismatch", "goes from 30 %"),  # the default pays for order
    (Truth(throughput=-0.4, cpu=0.4, write_run=0.4, flushes=0.3), "none", "flushes more often"),
    (Truth(throughput=-0.4, cpu=0.4, write_run=0.4, writes=0.6), "insufficient", "writes more often"),
    (Truth(throughput=-1.2, cpu=0.4, write_run=0.4), "none", "too small a part"),  # 390 us of 2,300
    (Truth(throughput=-0.4, cpu=0.4), "none", "no loss"),  # no order for it
    (Truth(throughput=-0.4, cpu=-0.4, write_run=0.4), "none", "no loss"),  # order that saves CPU
    (Truth(throughput=0.4, cpu=0.4, write_run=0.4), "none", "no loss"),  # order that pays
    (Truth(throughput=-0.4, write_run=0.4), "none", "no loss"),  # order that costs no CPU
    (Truth(cpu=0.4, write_run=0.4), "none", "no loss"),
]


@pytest.mark.parametrize(("truth", "verdict", "said"), ORDERED)
def test_io_sequentiality_needs_cpu_that_is_spent_for_order(
    judge_one: Judge, truth: Truth, verdict: str, said: str
) -> None:
    cases = [{"truth": {("page", "16"): one}} for one, *_ in ORDERED]
    case = {"truth": {("page", "16"): truth}}
    findings = judge_one("io_sequentiality", cases, case, noise=0.006, repeats=6, knobs=("page",), threads=1)
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == verdict, row["sentence"]
    assert said in row["sentence"]


#: CPU time of an operation, of which the value takes half as much more, for about two requests in order.
TAXED = (4_000.0, 80_000.0)


@pytest.mark.parametrize("cpu_us", TAXED)
def test_io_sequentiality_blames_no_order_that_cannot_cost_so_much(judge_one: Judge, cpu_us: float) -> None:
    truth = {("page", "16"): Truth(throughput=-0.4, cpu=0.4, write_run=0.4)}
    cases = [{"cpu_us": one, "truth": truth} for one in TAXED]
    case = {"cpu_us": cpu_us, "truth": truth}
    findings = judge_one("io_sequentiality", cases, case, noise=0.006, repeats=6, knobs=("page",), threads=1)
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "insufficient", row["sentence"]
    assert "so it is unknown whether that is spent on order" in row["sentence"]


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
    assert "CPU per operation: 4" in row["sentence"]
    assert json.loads(row["evidence"])["read_share"]["counts"] is True


def test_io_parallelism_that_no_value_frees(make_study: Make) -> None:
    study = make_study(depth_one=0.99)
    row = only_row(study.judge("io_parallelism"))
    assert row.verdict == "mismatch"
    assert row.knob is None or pd.isna(row.knob)
    assert (
        "while the device is busy (80 % of the time), with only one request in flight for 99 % of that" in row.sentence
    )
    assert "9 values of 5 knobs were measured with a busy device, and none changes that" in row.sentence
    # Of the time, 20 % are spent without the device, and its 80 % become a ninth: 1 / (.2 + .8 / 9).
    assert row.penalty == pytest.approx(3.46, abs=0.01)
    assert "which could make this workload at most 3.5x as fast" in row.sentence


def test_what_fio_gained_replaces_the_bound_of_the_profile(make_study: Make) -> None:
    row = only_row(make_study(depth_one=0.99).judge("io_parallelism"))
    finding = {name: None if pd.isna(value) else value for name, value in row._asdict().items()}
    evidence = json.loads(row.evidence)
    evidence |= {"profile_gain": evidence["most_gain"], "most_gain": 3.0}
    specs = read_shipped_rule("io_parallelism")
    stated = restate_gain(specs, {**finding, "evidence": json.dumps(evidence)}, Sentences({}))
    assert "at most" not in stated["sentence"]
    assert stated["sentence"].endswith("as many random reads at depth 32 as at depth one.")
    assert restate_gain(specs, finding, Sentences({})) == finding


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
    assert "buffer = 32 changes that (only one in flight for 49 % of the busy time, 2.5 on average; " in row.sentence
    evidence = json.loads(row.evidence)
    assert evidence["freed"] == 2
    assert evidence["freed_by"]["throughput"] == pytest.approx(0.49, rel=0.2)


LOADED = [((4.0, 1.0, 1.0), "mismatch"), ((2.0, 1.0, 1.5), "none"), ((1.0, 1.0), "none")]


@pytest.mark.parametrize(("loads", "verdict"), LOADED)
def test_io_parallelism_by_hardware_queues(judge_one: Judge, loads: tuple[float, ...], verdict: str) -> None:
    cases = [{"queue_loads": one, "depth_one": 0.4} for one, _ in LOADED]
    row = only_row(judge_one("io_parallelism", cases, {"queue_loads": loads, "depth_one": 0.4}))
    assert row.verdict == verdict
    if verdict == "mismatch":
        assert "the most loaded queue carries 67 %" in row.sentence


QUEUED: list[tuple[Any, ...]] = [
    ({"depth_one": 0.99}, "mismatch", "only one request in flight for 99 %"),
    ({"depth_one": 0.97, "device_gain": 2.0, "saturating_depth": None}, "mismatch", "2x as many random reads"),
    ({"depth_one": 0.87}, "insufficient", "more than one at a time, but for most of the busy time only one"),
    (
        {"depth_one": 0.4},
        "none",
        "more than one at a time (only one for less than 95 % of the busy time), but fewer than the device could serve",
    ),
    ({"depth_one": 0.5, "saturating_depth": 3.0}, "none", "the device needs 3 in flight to reach its full rate"),
    (
        {"depth_one": 0.99, "device_gain": 1.01, "saturating_depth": 1.0},
        "none",
        "nothing to gain that matters",
    ),  # a tape, say
    # One at a time uses nothing of what lies beyond the first request, however little that is.
    ({"depth_one": 0.99, "saturating_depth": 1.5}, "mismatch", "the device needs 1.5 in flight to reach its full rate"),
    (
        {"depth_one": 0.96, "saturating_depth": 1.1},
        "none",
        "that is, beyond the first request, at least 50 % of what it needs",
    ),
    # Four queues, each at depth one: four in flight, of which the device could take sixteen.
    (
        {"depth_one": 0.1, "queue_loads": (1.0, 1.0, 1.0, 1.0), "queue_one": 0.99},
        "mismatch",
        "4 hardware queues has",
    ),
    (
        {"depth_one": 0.1, "queue_loads": (1.0, 1.0, 1.0, 1.0), "queue_one": 0.4},
        "none",
        "only one for 73 %",
    ),
    ({"queue_loads": (9.0, 1.0), "queue_one": 0.4}, "mismatch", "the most loaded queue carries 90 %"),
    ({"depth_one": 0.99, "busy": 0.03}, "insufficient", "busy for only 3 %"),
]


@pytest.mark.parametrize(("made", "verdict", "said"), QUEUED)
def test_io_parallelism_is_judged_by_queue_and_by_what_the_device_takes(
    judge_one: Judge, made: dict[str, Any], verdict: str, said: str
) -> None:
    row = only_row(judge_one("io_parallelism", [one for one, *_ in QUEUED], made))
    assert row.verdict == verdict, row.sentence
    assert said in row.sentence


@pytest.mark.parametrize(("busy", "told"), [(0.03, "3 %"), (0, "0 %")])
def test_io_parallelism_of_an_idle_device(judge_one: Judge, busy: float, told: str) -> None:
    row = only_row(judge_one("io_parallelism", [{"busy": 0.03}, {"busy": 0}], {"busy": busy}, depth_one=0.99))
    assert row.verdict == "insufficient"
    assert f"busy for only {told} of the time" in row.sentence


def test_io_parallelism_without_another_value(make_study: Make) -> None:
    def fail(run: dict[str, Any]) -> None:
        if not run["is_sentinel"]:
            run["status"] = "failed_start"

    row = only_row(make_study(depth_one=0.99, tweak=fail).judge("io_parallelism"))
    assert row.verdict == "insufficient"
    assert "no knob value that could change that was measured" in row.sentence


#: A sentinel does 1,000 operations, 2,000 writes of 4 KiB, 400 reads and 200 flushes of 1,000 us in each second.
USED: list[tuple[Any, ...]] = [
    ({}, "none", "the device is well used"),
    ({"write_iops": 40000.0}, "mismatch", "too few requests in flight: the device needs 16"),
    ({"write_iops": 40000.0, "flushes": 0.7}, "mismatch", "flushes per second of 1 ms each take 7"),
    (
        {"write_iops": 40000.0, "flushes": 0.7, "flush_us": 40.0},
        "mismatch",
        "too few requests in flight",
    ),  # a fast flush
    # A fifth of the writes fill units in part.
    ({"write_iops": 40000.0, "flushes": 0.7, "unit_us": 4000.0}, "mismatch", "go into filling units of the device"),
    ({"write_iops": 40000.0, "flushes": 0.7, "unit_us": 400.0}, "mismatch", "flushes per second of 1 ms each take"),
    (
        {"write_iops": 40000.0, "flushes": 0.7, "unit_us": 8000.0},
        "mismatch",
        "about as long as filling units of the device",
    ),
    ({"write_iops": 40000.0, "saturating_depth": 3.0}, "mismatch", "it is the kind of requests"),
    ({"write_iops": 40000.0, "saturating_depth": None}, "mismatch", "the device needs 32"),  # or more
    ({"write_iops": 40000.0, "busy": 0.3}, "none", "of the time nothing waits for the device"),
    ({"write_iops": 2500.0}, "none", "the device is well used"),
    ({"write_iops": 2500.0, "flushes": 0.7}, "none", "the device is well used"),
    ({"write_iops": 2500.0, "busy": 0.3}, "none", "of the time nothing waits"),
    (
        {"write_iops": 40000.0, "batch": 1.0},
        "mismatch",
        "80 % of the reads and writes are submitted asynchronously, 1 per",
    ),
    ({"batch": 8.0}, "none", "are submitted asynchronously, 8 per call)"),
    ({"write_iops": 40000.0, "profiles": False}, "insufficient", "its capability is unknown"),
    # 2,000 writes per second on a device that is said to do 1,200: nobody believes its profile.
    ({"write_iops": 1200.0}, "insufficient", "The device can therefore do more than its profile says"),
]


@pytest.mark.parametrize(("made", "verdict", "said"), USED)
def test_default_profile_says_what_is_used_and_what_holds_it_back(
    judge_one: Judge, made: dict[str, Any], verdict: str, said: str
) -> None:
    row = only_row(judge_one("default_profile", [one for one, *_ in USED], made, threads=16))
    assert row.verdict == verdict, row.sentence
    assert said in row.sentence


@pytest.mark.parametrize(("most", "verdict"), [(0.45, "mismatch"), (0.53, "insufficient")])
def test_default_profile_needs_time_to_wait_in_every_block(make_study: Make, most: float, verdict: str) -> None:
    """Half of the time is asked for; on average it is left in both cases."""

    def compute(run: dict[str, Any]) -> None:
        run["cpu_s"] = (most if run["block_id"].endswith("0") else 0.4) * 16 * run["window_s"]

    row = only_row(make_study(threads=16, write_iops=40000.0, flushes=0.7, tweak=compute).judge("default_profile"))
    assert row.verdict == verdict, row.sentence
    assert ("CPU time leaves its clients only 47 % of their time" in row.sentence) == (verdict == "insufficient")
