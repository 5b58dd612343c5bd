"""What is read from measured curves."""

import pytest

from knobscope.characterise.curves import FULL, PAGE, QUICK, Measured, Point, Schedule, choose_knee, merge, rank_tier


def test_knee_of_a_plateau_is_its_first_size() -> None:
    plateau = {size * 1024: min(size * 25.5, 517) for size in range(4, 132, 4)}  # MB/s of flash with a 520 MB/s bus
    assert choose_knee(plateau) == 20 * 1024


def test_knee_of_a_rising_curve_is_its_end() -> None:
    assert choose_knee({4: 1.0, 8: 2.0, 16: 4.0}) == 16


def test_knee_of_a_flat_curve_is_its_start() -> None:
    assert choose_knee({4: 99.0, 8: 95.0, 16: 100.0}) == 4


@pytest.mark.parametrize(("latency", "rank"), [(8000, 0), (3001, 0), (3000, 1), (900, 1), (300, 2), (121, 2), (70, 3)])
def test_cloud_disk_is_placed_by_its_latency(latency: float, rank: int) -> None:
    assert rank_tier("cloud", latency) == rank


def test_other_tiers_have_their_place_whatever_was_measured() -> None:
    assert [rank_tier(tier, 1.0) for tier in ("hdd", "sata_ssd", "nvme_ssd", "memory")] == [0, 2, 3, 4]


def test_merge_takes_medians_and_ignores_one_bad_window() -> None:
    windows = [Measured(100, 10, 5, 7), Measured(1, 1000, 500, 9), Measured(110, 11, 6, 8)]
    assert merge(windows) == Measured(100, 11, 6, 8)


@pytest.mark.parametrize("schedule", [QUICK, FULL])
def test_schedules_hold_every_point_that_a_profile_needs(schedule: Schedule) -> None:
    needed = {
        Point("write_size_fsync", "randwrite", PAGE, 1),
        Point("queue_depth", "randread", PAGE, 1),
        Point("queue_depth", "read", PAGE, 1),
    }
    assert needed <= set(schedule.points)
    assert len(set(schedule.points)) == len(schedule.points)
    assert all(point.block_bytes % PAGE == 0 for point in schedule.points)
