"""Comparison of replicas, and replicas on a real loop device."""

import math
from pathlib import Path

import numpy as np
import pytest
from loop_devices import Syncs, open_loop

from knobscope.devices import OpenDevice
from knobscope.stages.characterise.fio import lay_out_file
from knobscope.stages.imitate import verdict
from knobscope.stages.imitate.experiment import Ratio, compare, run_replicas
from knobscope.stages.imitate.pattern import Pattern
from knobscope.stages.imitate.replica import Part, plan_replica
from knobscope.stages.imitate.verdict import Answer, Comparison, PartlyFilled


def test_ratio_and_interval_of_log_ratios() -> None:
    found = compare([2.0, 4.0, 2.0, 4.0, math.sqrt(8)], [1.0] * 5)
    assert found.estimate == pytest.approx(math.sqrt(8))
    error = math.log(2) / 2 * math.sqrt(4 / 4 / 5)  # standard deviation of the logs, over the root of five
    # Student's t of 97.8 %, 4 degrees of freedom: one looks up to three times.
    assert math.log(found.high / found.estimate) == pytest.approx(3.6331 * error, rel=1e-3)
    assert found.low * found.high == pytest.approx(found.estimate**2)


def test_drift_that_meets_both_alike_does_not_widen_the_interval() -> None:
    drifting = [100.0, 50.0, 25.0, 12.0, 6.0]
    found = compare([1.5 * value for value in drifting], drifting)
    assert (found.low, found.high) == pytest.approx((1.5, 1.5))


def test_intervals_that_are_looked_at_three_times_hold_the_truth_95_times_of_100() -> None:
    generator = np.random.default_rng(1)
    missed = 0
    for _ in range(3000):
        figures = np.exp(generator.normal(0, 0.2, 15))
        looks = [compare(list(figures[:rounds]), [1.0] * rounds) for rounds in (5, 10, 15)]
        missed += any(look.low > 1 or look.high < 1 for look in looks)
    assert missed / 3000 == pytest.approx(0.05, abs=0.012)  # three standard errors


def ratio(estimate: float, spread: float = 1.02) -> Ratio:
    return Ratio(estimate, estimate / spread, estimate * spread, 5)


@pytest.mark.parametrize(
    ("measured", "replayed", "exchanged", "reproduced", "due"),
    [
        (4.0, ratio(3.8), ratio(3.5), True, True),
        (4.0, ratio(0.5), ratio(3.5), False, True),  # the I/O of the slower setting is the faster one
        (4.0, ratio(1.5), ratio(1.4), False, True),  # the smaller part of the difference
        (4.0, ratio(3.8, spread=5), ratio(3.5), None, True),  # not sure
        (1592.0, None, ratio(8.8, spread=4.9), True, True),  # 89 % of the time
        (1592.0, None, ratio(1.5, spread=1.4), True, None),  # a third, and perhaps half
        (1592.0, None, ratio(1.5, spread=1.2), True, False),
        (4.0, ratio(3.8), ratio(1.02), True, False),  # something else makes the difference: the sizes are equal, say
        (1.3, ratio(9.0), ratio(1.3), True, True),  # most of the I/O's time is hidden behind other work
        (4.0, None, ratio(5.0), True, True),  # the faster setting does no I/O
        (4.0, None, ratio(1.1), True, False),
    ],
)
def test_when_a_replay_shows_the_difference(
    measured: float, replayed: Ratio | None, exchanged: Ratio, reproduced: Answer, due: Answer
) -> None:
    found = Comparison(measured, replayed, exchanged)
    assert (found.is_reproduced, found.is_due_to_exchanged) == (reproduced, due)


@pytest.mark.parametrize(
    ("measured", "busy_share", "may_be"),
    [
        (3.0, 0.14, False),  # without any I/O it would be 1.16 times as fast; most of the difference takes 1.5
        (3.0, 0.5, True),
        (1.2, 0.14, True),
        (100.0, 0.49, False),
        (100.0, 1.0, True),
        (1.0, 0.0, True),  # nothing to explain
    ],
)
def test_io_explains_no_more_than_the_time_in_which_the_device_is_busy(
    measured: float, busy_share: float, may_be: bool
) -> None:
    assert verdict.may_be_io(measured, busy_share) is may_be


def test_what_faster_io_is_worth_to_the_dbms() -> None:
    """Of a device that is busy for 14 % of the time, 6.8 times as many requests are worth 14 %, and 1.2 times 2 %."""
    gain = verdict.gain_of_dbms(Ratio(6.8, 6.0, 7.6, 5), 0.14)
    assert gain.estimate == pytest.approx(1 / (0.86 + 0.14 / 6.8))
    assert 1 < gain.low < gain.estimate < gain.high < 1 / 0.86
    assert verdict.is_worthwhile(gain)
    assert verdict.is_worthwhile(verdict.gain_of_dbms(ratio(1.2), 0.14)) is False
    assert verdict.gain_of_dbms(ratio(6.8), 1.0) == ratio(6.8)


@pytest.mark.parametrize(
    ("limits", "units", "difference_us", "may_be_most"),
    [
        (ratio(3.0), 1.0, 250.0, True),  # a write across limits takes 206 us longer, at most
        (ratio(3.0), 0.5, 250.0, False),  # every other operation fills one in part: 103 us at most
        (ratio(3.0), 0.5, 200.0, True),
        (ratio(1.0, spread=1.12), 8.0, 450.0, False),  # nothing is sure but that it is less than a quarter
        (ratio(0.9), 8.0, 1.0, False),
    ],
)
def test_what_partly_filled_units_can_cost(
    limits: Ratio, units: float, difference_us: float, may_be_most: bool
) -> None:
    found = PartlyFilled(limits, 100e-6, units, difference_us * 1e-6)
    assert found.most_s >= 0
    assert found.may_be_most == may_be_most


def test_when_changed_io_is_worthwhile_and_when_it_loses_nothing() -> None:
    assert verdict.is_worthwhile(Ratio(1.6, 1.4, 1.8, 5))
    assert verdict.is_worthwhile(Ratio(1.5, 0.9, 2.5, 5)) is None  # not sure
    assert verdict.is_worthwhile(Ratio(1.01, 1.001, 1.02, 5)) is False  # sure, and not worth a finding
    assert verdict.loses_nothing(Ratio(1.0, 0.95, 1.05, 5))
    assert verdict.loses_nothing(Ratio(0.98, 0.5, 1.9, 5)) is None
    assert verdict.loses_nothing(Ratio(0.5, 0.4, 0.6, 5)) is False


@pytest.mark.parametrize(
    ("answers", "wanted"),
    [([True, True], True), ([True, None], None), ([None, False], False), ([False, True], False), ([], True)],
)
def test_one_no_is_enough_and_what_is_not_known_is_not_held(answers: list[Answer], wanted: Answer) -> None:
    assert verdict.all_hold(answers) is wanted
    assert [verdict.deny(one) for one in (True, False, None)] == [False, True, None]


def count_flushes(device: OpenDevice) -> int:
    """Return the flushes that the device has done, as the kernel counts them."""
    return int(Path(f"/sys/block/{device.block.name}/stat").read_text().split()[15])


@pytest.mark.real
def test_fio_repeats_mix_sizes_and_flushes(loop: OpenDevice, tmp_path: Path) -> None:
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
    with lay_out_file(loop, 32 << 20) as file, open_loop(tmp_path / "idle", 16, "ext4") as idle:
        syncs, before = Syncs(idle), count_flushes(loop)
        ((_, variables),) = plan_replica(pattern, file)
        figures = file.run_window("replica", 500, variables)
        flushes, is_shared = count_flushes(loop) - before, syncs.came()
    reads, writes = (figures[name]["total_ios"] for name in ("read", "write"))
    assert reads / (reads + writes) == pytest.approx(0.4, abs=0.05)
    assert figures["read"]["io_bytes"] / reads == pytest.approx(16384, rel=0.02)
    assert figures["write"]["io_bytes"] / writes == pytest.approx(6144, rel=0.1)
    least = 0 if is_shared else 3.6  # a flush per write is what it must not be
    assert least <= writes / flushes <= 8.4  # asked for: 6; the ramp is flushed, too, and not in fio's figures


@pytest.mark.real
@pytest.mark.long
def test_who_looks_again_gets_as_many_rounds_more_three_times(loop: OpenDevice) -> None:
    one = Pattern(100, 0, {4096: 1}, {}, 1.0, 1.0, 0, 1.0)
    with lay_out_file(loop, 16 << 20) as file:
        looks = run_replicas([(one, "requests"), (one, "requests")], file, Part(0, 16 << 20), 1.0, "test")
        rounds = [[len(figures) for figures in found] for found in looks]
    assert rounds == [[5, 5], [10, 10], [15, 15]]
