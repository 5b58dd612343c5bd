"""Sentences fit their numbers: one form for effects, no share beyond its range, nothing that was not measured."""

import json
import math
import re
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from generated_studies import Study, Truth, Use

from knobscope.text.formats import describe_effect, describe_move, loosen_units

Make = Callable[..., Study]
Judge = Callable[..., pd.DataFrame]  # as fixture `judge_one`


@pytest.mark.parametrize(
    ("ratio", "low", "high", "said"),
    [
        (0.82, 0.75, 0.9, "18 % slower (95 % interval 10 % to 25 %)"),
        (1.4, 1.2, 2.6, "40 % faster (95 % interval 20 % to 160 %)"),
        (5.1, 4.2, 6.3, "5.1x faster (95 % interval 4.2x to 6.3x)"),
        (1 / 5.1, 1 / 6.3, 1 / 4.2, "5.1x slower (95 % interval 4.2x to 6.3x)"),
        (0.82, 0.55, 1.23, "no clear effect (95 % interval 45 % slower to 23 % faster)"),
        (2.2, 0.4, 9.0, "no clear effect (95 % interval 2.5x slower to 9x faster)"),
        (0.82, None, None, "18 % slower"),
    ],
)
def test_an_interval_reads_like_its_estimate(ratio: float, low: float | None, high: float | None, said: str) -> None:
    ends = [None if end is None else math.log(end) for end in (low, high)]
    assert loosen_units(describe_effect(math.log(ratio), *ends)) == said


def test_a_number_that_stays_is_not_said_twice() -> None:
    assert describe_move("100 %", "100 %") == "stays at 100 %"
    assert describe_move("9 %", "4 %") == "goes from 9 % to 4 %"


def test_no_sentence_leaves_the_range_of_a_share_or_repeats_a_number(make_study: Make) -> None:
    """The default writes 80 % aligned; drops of the unaligned share beyond zero come from noise of the fit."""
    truth = {("page", "16"): Truth(throughput=0.3, unaligned=-0.2), ("buffer", "2"): Truth(write_run=-0.3)}
    findings = make_study(devices=("hdd", "nvme"), truth=truth, noise=0.05)
    for rule in ("io_size", "io_sequentiality"):
        rows = findings.judge(rule)
        said = " ".join(rows["sentence"])
        assert not re.search(r"-\d", said)
        assert not re.search(r"from (\S+ %) to \1", said)
        assert not re.search(r"\d+ bytes", said)
        for text in rows["evidence"]:
            for value in json.loads(text).values():
                if isinstance(value, dict) and {"before", "after"} <= set(value):
                    assert all(value[name] is None or value[name] >= 0 for name in ("before", "after"))


def test_one_client_thread_tells_nothing_of_parallelism(make_study: Make) -> None:
    (row,) = make_study(depth_one=0.87, seed=11, threads=1).judge("io_parallelism").itertuples()
    assert row.verdict == "insufficient"
    assert "its single client thread waits for each of its operations" in row.sentence
    assert "in flight for 87 % of the busy time" in row.sentence


WAITING = [(0.0, "insufficient"), (0.7, "mismatch")]


@pytest.mark.parametrize(("flushes", "verdict"), WAITING)
def test_one_client_thread_is_no_fault_of_a_default_configuration(
    judge_one: Judge, flushes: float, verdict: str
) -> None:
    common: dict[str, Any] = {"write_iops": 40000.0, "cpu_us": 100.0}
    cases = [{"flushes": one} for one, _ in WAITING]
    of_many, of_one = (
        judge_one("default_profile", cases, {"flushes": flushes}, **common, threads=threads) for threads in (16, 1)
    )
    assert set(of_many["verdict"]) == {"mismatch"}
    (row,) = of_one.itertuples()
    assert row.verdict == verdict, row.sentence
    said = "its single client thread waits for each operation, so no more requests are in flight"
    assert (said in row.sentence) == (verdict == "insufficient")


DEPTHS: list[dict[str, Any]] = [
    {"depth_one": 0.87},
    {"depth_one": 0.948, "noise": 0.006},
    {"depth_one": 0.97, "truth": {("page", "16"): Truth(depth_one=-0.022)}, "noise": 0.006},
]


def test_a_depth_below_the_threshold_is_left_open(judge_one: Judge) -> None:
    (row,) = judge_one("io_parallelism", DEPTHS, DEPTHS[0], seed=12).itertuples()
    assert row.verdict == "insufficient"
    assert "with only one request in flight for 87 % of that" in row.sentence
    assert row.sentence.endswith("more than one at a time, but for most of the busy time only one.")


def test_a_depth_just_below_the_threshold_is_not_rounded_to_it(judge_one: Judge) -> None:
    (row,) = judge_one("io_parallelism", DEPTHS, DEPTHS[1], seed=12).itertuples()
    assert row.verdict == "insufficient"
    assert re.search(r"with only one request in flight for 94\.\d+ % of that", row.sentence), row.sentence
    (row,) = judge_one("io_parallelism", DEPTHS, DEPTHS[2], seed=12).itertuples()
    assert row.verdict == "insufficient"
    said = r"page = 16 KiB changes that \(only one in flight for 94\.\d+ % of the busy time, 1\.2 on average"
    assert re.search(said, row.sentence), row.sentence


def test_what_no_run_does_is_not_called_half_of_it(make_study: Make) -> None:
    """A setting without reads or writes has effects on their number that are lower bounds."""
    truth = {("page", "16"): Truth(throughput=0.8, flushes=-1.0, writes=-50, reads=-50)}
    study = make_study(truth=truth, flushes=1.0, reads_per_op=2.0, read_us=400.0, noise=0.006, repeats=4)
    flush, reads = (
        study.judge(rule).set_index(["knob", "value"]).loc[("page", "16")] for rule in ("flush", "read_amplification")
    )
    assert flush["verdict"] == "mismatch"
    assert "Bytes written per operation" not in flush["sentence"]
    assert "from 8 KiB to 0 B, and the number of reads per operation goes from 2 to 0" in reads["sentence"]


def test_a_loss_too_small_to_matter_is_not_denied(make_study: Make) -> None:
    """It is 3 % slower, because of 3 flushes more in a hundred operations: that is no mismatch, and no nothing."""
    truth = {("page", "16"): Truth(throughput=-0.03, flushes=0.03)}
    study = make_study(truth=truth, flushes=0.0, noise=0.004, repeats=4, knobs=("page",), seed=16)
    row = study.judge("flush").set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "none"
    assert "waiting for flushes explains no loss that matters" in row["sentence"]


def test_a_file_with_some_writes_is_not_called_only_read(make_study: Make) -> None:
    uses = (Use("t", "data", "orders", reads=4000, writes=100), Use("log/", "log", writes=3))
    (row,) = make_study(uses=uses, seed=13).judge("read_write_interference").itertuples()
    assert row.verdict == "none"
    assert "only read" not in row.sentence
    assert "2.4 % of the requests to orders are writes" in row.sentence


def test_what_the_design_leaves_out_is_said_once_per_case(make_study: Make) -> None:
    study = make_study(columns={"monitor": "procfs", "lost_events": None}, calls=False, seed=14)
    for rule in ("tier", "io_size", "io_sequentiality", "io_parallelism", "access_pattern", "cross_check"):
        rows = study.judge(rule)
        assert rows["verdict"].tolist() == ["insufficient"], rule
        assert pd.isna(rows["knob"].iloc[0])
        assert not re.search(r"\s[.,;:)]", rows["sentence"].iloc[0])


def test_none_needs_an_interval_that_rules_the_effect_out(make_study: Make) -> None:
    findings = make_study(noise=0.15, seed=15).judge("intuition")
    assert "mismatch" not in set(findings["verdict"])
    unsure = findings[findings["verdict"] == "insufficient"]
    assert len(unsure) >= 3
    assert unsure["sentence"].str.endswith("which does not rule out an effect that matters.").all()
