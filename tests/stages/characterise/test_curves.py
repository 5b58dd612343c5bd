"""What is read from measured curves."""

import pytest

from knobscope.stages.characterise.curves import (
    PAGE,
    FlushTimes,
    Measured,
    Point,
    choose_knee,
    find_saturation,
    merge,
    next_depth,
    rank_tier,
)
from knobscope.stages.characterise.properties import find_preferred_size, find_ratios
from knobscope.stages.characterise.schedule import FULL, QUICK, Schedule


def test_knee_of_a_plateau_is_its_first_size() -> None:
    plateau = {size * 1024: min(size * 25.5, 517) for size in range(4, 132, 4)}  # MB/s of flash with a 520 MB/s bus
    assert choose_knee(plateau) == 20 * 1024


def test_knee_of_a_rising_curve_is_its_end() -> None:
    assert choose_knee({4: 1.0, 8: 2.0, 16: 4.0}) == 16


def test_knee_of_a_flat_curve_is_its_start() -> None:
    assert choose_knee({4: 99.0, 8: 95.0, 16: 100.0}) == 4


def size_curve(speeds: dict[int, float]) -> dict[Point, Measured]:
    return {Point("write_size", "randwrite", size, 4): Measured(1, speed, 1, 1) for size, speed in speeds.items()}


def test_a_curve_that_still_rises_at_its_end_has_no_preferred_size() -> None:
    assert find_preferred_size(size_curve({4096: 100, 65536: 400, 4 << 20: 900})) is None
    assert find_preferred_size(size_curve({4096: 100, 65536: 850, 4 << 20: 900})) == 65536


@pytest.mark.parametrize("channels", [1, 3, 10, 23, 60])
def test_depth_that_saturates_is_found_between_powers_of_two(channels: int) -> None:
    def reads(depth: int) -> float:
        return min(depth, channels) * 5000.0

    curve = {depth: reads(depth) for depth in FULL.read_depths}
    for _ in range(FULL.finer_depths):
        depth = next_depth(curve)
        if depth is None:
            break
        assert depth not in curve
        curve[depth] = reads(depth)
    assert find_saturation(curve) == pytest.approx(max(1, 0.9 * channels), rel=0.06)


def test_depth_of_a_curve_that_still_rises_is_not_known() -> None:
    assert find_saturation({1: 10.0, 32: 320.0, 64: 640.0}) is None


def test_ratios_of_random_to_sequential_are_reported_by_depth() -> None:
    rates = {
        ("randread", 1): 80.0,
        ("read", 1): 4000.0,
        ("randread", 2): 90.0,
        ("randread", 4): 100.0,
        ("read", 4): 5000.0,
    }
    curves = {
        Point("queue_depth", pattern, PAGE, depth): Measured(iops, 1, 1, 1) for (pattern, depth), iops in rates.items()
    }  # type: ignore[arg-type]
    assert find_ratios(curves, "randread", "read") == {1: 0.02, 4: 0.02}


@pytest.mark.parametrize(("latency", "rank"), [(8000, 0), (3001, 0), (3000, 1), (900, 1), (300, 2), (121, 2), (70, 3)])
def test_cloud_disk_is_ranked_by_its_latency(latency: float, rank: int) -> None:
    assert rank_tier("cloud", latency) == rank


def test_other_tiers_have_their_rank_whatever_was_measured() -> None:
    assert [rank_tier(tier, 1.0) for tier in ("hdd", "sata_ssd", "nvme_ssd", "memory")] == [0, 2, 3, 4]


def test_of_several_windows_the_best_counts() -> None:
    windows = [
        Measured(100, 10, 5, 50, FlushTimes(9, 7, 80, 90, 10)),
        Measured(1, 1000, 500, 900, FlushTimes(900, 900, 900, 900, 1)),
        Measured(110, 11, 6, 60, FlushTimes(8, 8, 9, 10, 12)),
    ]
    assert merge(windows) == Measured(110, 11, 6, 60, FlushTimes(9, 7, 80, 90, 10))


@pytest.mark.parametrize("schedule", [QUICK, FULL])
def test_schedules_hold_every_point_that_a_profile_needs(schedule: Schedule) -> None:
    points = [*schedule.reads(), *schedule.writes()]
    assert {Point("queue_depth", pattern, PAGE, 1) for pattern in ("randread", "read", "randwrite", "write")} <= set(
        points
    )  # type: ignore[arg-type]
    assert len(set(points)) == len(points)
    assert max(schedule.write_sizes) == 4 << 20
    assert all(point.block_bytes % PAGE == 0 for point in points)
