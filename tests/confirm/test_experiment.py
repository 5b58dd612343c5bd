"""Comparison of replicas, and replicas on a real loop device."""

import math

import pytest

from knobscope.characterise.fio import lay_out_file
from knobscope.confirm.experiment import Ratio, compare
from knobscope.confirm.pattern import Pattern
from knobscope.confirm.replica import describe_replica
from knobscope.confirm.verdict import CAUSES
from knobscope.devices import OpenDevice


def test_ratio_and_interval_of_log_ratios() -> None:
    found = compare([2.0, 4.0, 2.0, 4.0, math.sqrt(8)], [1.0] * 5)
    assert found.estimate == pytest.approx(math.sqrt(8))
    error = math.log(2) / 2 * math.sqrt(4 / 4 / 5)  # standard deviation of the logs, over the root of five
    assert math.log(found.high / found.estimate) == pytest.approx(2.7764 * error, rel=1e-3)  # t, 4 degrees of freedom
    assert found.low * found.high == pytest.approx(found.estimate**2)


def test_drift_that_meets_both_alike_does_not_widen_the_interval() -> None:
    drifting = [100.0, 50.0, 25.0, 12.0, 6.0]
    found = compare([1.5 * value for value in drifting], drifting)
    assert (found.low, found.high) == pytest.approx((1.5, 1.5))


@pytest.mark.parametrize(
    ("rule", "low", "high", "holds"),
    [
        ("io_size", 1.4, 1.8, True),
        ("io_size", 0.9, 2.5, False),  # not sure
        ("io_size", 1.001, 1.02, False),  # sure, and not worth a finding
        ("io_parallelism", 3.0, 4.0, True),
        ("io_parallelism", 0.8, 1.1, False),
        ("io_sequentiality", 0.95, 1.05, True),  # random is as fast: sequential gains nothing
        ("io_sequentiality", 0.1, 0.2, False),
        ("io_sequentiality", 0.5, 1.9, False),
    ],
)
def test_when_a_cause_holds(rule: str, low: float, high: float, holds: bool) -> None:
    assert CAUSES[rule].holds(Ratio(math.sqrt(low * high), low, high, 5)) is holds


@pytest.mark.real
def test_fio_repeats_mix_sizes_and_flushes(loop: OpenDevice) -> None:
    pattern = Pattern(
        reads=400,
        writes=600,
        read_sizes={16384: 1},
        write_sizes={4096: 3, 12288: 1},
        read_random=1.0,
        write_random=0.5,
        flushes=100,
        depth=2.0,
    )
    with lay_out_file(loop, 32 << 20) as file:
        figures = file.run_window("replica", 500, describe_replica(pattern, file))
    reads, writes, syncs = (figures[name]["total_ios"] for name in ("read", "write", "sync"))
    assert reads / (reads + writes) == pytest.approx(0.4, abs=0.05)
    assert figures["read"]["io_bytes"] / reads == pytest.approx(16384, rel=0.02)
    assert figures["write"]["io_bytes"] / writes == pytest.approx(6144, rel=0.1)
    assert writes / syncs == pytest.approx(6, rel=0.3)
