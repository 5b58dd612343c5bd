"""Rule read_amplification: additional reads are a cause where clients wait for them, and nowhere else."""

import json
from collections.abc import Callable
from typing import Any

import pandas as pd
import pytest
from generated_studies import Truth

Judge = Callable[..., pd.DataFrame]  # as fixture `judge_one`

#: An operation takes its two clients 2,000 us together, 640 us of them for two reads of 400 us (2.5 in flight).
READ: dict[str, Any] = {"reads_per_op": 2.0, "read_us": 400.0}
CASES: list[tuple[Truth, dict[str, Any], str, str]] = [
    (Truth(throughput=-0.4, read_bytes=1.4, read_us=0.9), READ, "mismatch", "makes reads larger, not more frequent"),
    (Truth(throughput=-0.4, reads=0.9, read_bytes=-0.9), READ, "mismatch", "in more and smaller pieces"),
    (Truth(throughput=-0.4, reads=0.9), READ, "mismatch", "the number of reads per operation goes from 2 to 4.9"),
    (Truth(throughput=0.4, read_bytes=-1.4, read_us=-1.2), READ | {"read_us": 800.0}, "mismatch", "The default makes"),
    # CPU only, with larger reads that take as long as before; with no other reads; and what costs nothing at all.
    (Truth(throughput=-0.4, cpu=0.6, read_bytes=1.4), READ, "none", "accounts for at most"),
    (Truth(throughput=-0.4, cpu=0.6), READ, "none", "explains no loss"),
    (Truth(read_bytes=1.4, read_us=0.9), READ, "none", "explains no loss"),
    (Truth(throughput=0.4, read_bytes=1.4, read_us=0.9), READ, "none", "explains no loss"),
    (Truth(throughput=-0.4, read_us=0.9), READ, "none", "explains no loss"),  # a slower device, say: no more is read
    (Truth(throughput=-0.4), {"reads_per_op": 0.0}, "none", "no read reached the device"),  # the page cache has all
    # As many reads in the background as before, while the foreground takes more CPU.
    (Truth(throughput=-0.4, cpu=0.6), {"reads_per_op": None, "read_us": 200.0}, "none", "accounts for at most"),
    (Truth(throughput=-0.4), {"reads_per_op": None, "read_us": 5000.0}, "insufficient", "not sure that more is read"),
    # Eight clients and one request in flight: perhaps one waits, perhaps all do.
    (
        Truth(throughput=-0.4, read_bytes=1.4, read_us=1.2),
        READ | {"threads": 8, "depth_one": 1.0, "read_us": 150.0},
        "insufficient",
        "(`watch: [waits]`)",
    ),
]


@pytest.mark.parametrize(("truth", "made", "verdict", "said"), CASES)
def test_additional_reads_count_by_the_time_that_clients_wait(
    judge_one: Judge, truth: Truth, made: dict[str, Any], verdict: str, said: str
) -> None:
    threads = made.get("threads", 2)
    cases = [
        {"truth": {("page", "16"): one}, **{name: value for name, value in how.items() if name != "threads"}}
        for one, how, *_ in CASES
        if how.get("threads", 2) == threads
    ]
    case = {"truth": {("page", "16"): truth}, **{name: value for name, value in made.items() if name != "threads"}}
    more = {"noise": 0.006, "repeats": 4, "knobs": ("page",), "threads": threads}
    findings = judge_one("read_amplification", cases, case, **more)
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == verdict, row["sentence"]
    assert said in row["sentence"]


def test_the_bound_of_a_busy_device_decides_where_all_clients_wait(judge_one: Judge) -> None:
    """Two clients with 2.5 requests in flight on average: both bounds are one, and so is that of the penalty."""
    case = {"truth": {("page", "16"): Truth(throughput=-2.0, read_bytes=2.2, read_us=2.8)}, **READ}
    findings = judge_one("read_amplification", [case], case, noise=0.006, repeats=4, knobs=("page",))
    row = findings.set_index(["knob", "value"]).loc[("page", "16")]
    assert row["verdict"] == "mismatch"
    evidence = json.loads(row["evidence"])
    saved = evidence["share_high"] * (1 - evidence["throughput_ratio"])
    assert evidence["least_share"] == pytest.approx(evidence["most_share"])
    assert row["penalty"] == pytest.approx(1 / (1 - saved))
    assert 1.5 < row["penalty"] < 5  # it is 7.4x slower, on a device that is busy for 80 % of the time
