"""Patterns with one factor changed, and their words for fio."""

from dataclasses import replace
from pathlib import Path

import pytest

from knobscope.stages.characterise.fio import Engine, FioFile
from knobscope.stages.imitate.pattern import (
    Pattern,
    can_take_sizes,
    change_alignment,
    change_parallelism,
    change_sequentiality,
    count_partly_filled,
    take_flushes,
    take_reads,
    take_sizes,
    write_whole_units,
)
from knobscope.stages.imitate.replica import plan_replica, write_bssplit

PATTERN = Pattern(
    reads=1000,
    writes=3000,
    read_sizes={16384: 1000},
    write_sizes={4096: 2000, 16384: 1000},
    read_random=0.9,
    write_random=0.25,
    flushes=300,
    depth=1.4,
    operations=1500.0,
)
FILE = FioFile("fio", Path("fio.data"), 64 << 20, Engine("libaio", True))


def test_sizes_of_another_pattern_and_nothing_else() -> None:
    large = replace(PATTERN, write_sizes={65536: 1}, flushes=7, depth=9.0, operations=1.0)
    changed = take_sizes(PATTERN, large)
    assert changed.write_sizes == {65536: 1}
    work = PATTERN.writes * PATTERN.mean_write_bytes
    for name in ("reads", "flushes", "operations"):  # as many for each byte that is written
        assert getattr(changed, name) / (changed.writes * 65536) == pytest.approx(
            getattr(PATTERN, name) / work, rel=0.01
        )
    unchanged = ("read_sizes", "read_random", "write_random", "depth", "jobs")
    assert all(getattr(changed, name) == getattr(PATTERN, name) for name in unchanged)
    assert take_sizes(PATTERN, replace(PATTERN, flushes=7, depth=9.0)) == PATTERN  # equal sizes change nothing


def test_sizes_are_exchanged_where_more_units_are_filled_and_no_flush_is_lost() -> None:
    other = replace(PATTERN, write_sizes={16384: 5})
    assert can_take_sizes(PATTERN, other, 16384)  # instead of a third
    assert not can_take_sizes(PATTERN, other, 32768)
    assert not can_take_sizes(PATTERN, other, 4096)
    assert not can_take_sizes(PATTERN, replace(other, writes=0, write_sizes={}), 16384)
    assert not can_take_sizes(PATTERN, None, 16384)
    assert not can_take_sizes(replace(PATTERN, flushes=1600), other, 16384)  # 3,000 writes of 8 KiB are 1,500 of 16 KiB


def test_whole_units_and_nothing_else() -> None:
    changed = write_whole_units(replace(PATTERN, write_sizes={4096: 2, 8192: 3, 12288: 5}), 8192)
    assert changed.write_sizes == {8192: 5, 16384: 5}
    assert replace(changed, write_sizes=PATTERN.write_sizes, align_bytes=0) == PATTERN
    assert changed.align_bytes == 8192


def test_flushes_of_another_pattern_and_nothing_else() -> None:
    other = replace(PATTERN, flushes=30, operations=50.0, write_sizes={65536: 1}, depth=9.0)
    changed = take_flushes(PATTERN, other)
    assert changed.flushes / changed.operations == other.flushes / other.operations
    assert replace(changed, flushes=PATTERN.flushes) == PATTERN
    assert take_flushes(PATTERN, None).flushes == 0


def test_reads_of_another_pattern_and_nothing_else() -> None:
    other = replace(PATTERN, reads=100, operations=50.0, read_sizes={4096: 100}, read_random=1.0, flushes=1, depth=9.0)
    changed = take_reads(PATTERN, other)
    assert changed.reads / changed.operations == other.reads / other.operations
    assert (changed.read_sizes, changed.read_random) == ({4096: 100}, 1.0)
    same = {name: getattr(PATTERN, name) for name in ("reads", "read_sizes", "read_random")}
    assert replace(changed, **same) == PATTERN


def test_alignment_is_tried_at_equal_size() -> None:
    across, aligned = change_alignment(PATTERN, 32768)
    assert replace(across, shift_bytes=0) == aligned
    assert (across.shift_bytes, aligned.write_sizes, aligned.reads) == (16384, {32768: 1}, 0)
    work = PATTERN.writes * PATTERN.mean_write_bytes
    assert aligned.flushes / (aligned.writes * 32768) == pytest.approx(PATTERN.flushes / work, rel=0.01)


def test_parallelism_alone_changes() -> None:
    changed = change_parallelism(PATTERN)
    assert changed.jobs * changed.depth == 32
    assert replace(changed, jobs=PATTERN.jobs, depth=PATTERN.depth) == PATTERN


def test_sequentiality_alone_changes() -> None:
    changed = change_sequentiality(PATTERN)
    assert (changed.read_random, changed.write_random) == (1.0, 1.0)
    assert replace(changed, read_random=PATTERN.read_random, write_random=PATTERN.write_random) == PATTERN


def test_replica_has_the_shares_of_the_pattern() -> None:
    assert plan_replica(replace(PATTERN, flushes=333), FILE) == [
        (
            1.0,
            {
                "READS": 25,
                "SIZES": "16384/100,4096/67:16384/33",
                "ALIGN": "16384,4096",
                "RANDOM": "90,25",
                "FDATASYNC": 12,  # 9 writes per flush, and fio repeats it after a quarter of the requests, the reads
                "DEPTH": 1,
                "JOBS": 1,
                "SHIFT": 0,
                "PART": 64 << 20,
            },
        )
    ]


@pytest.mark.parametrize(("flushes", "wanted"), [(2100, [1, 2]), (1200, [2, 3]), (700, [4, 5])])
def test_flushes_between_whole_numbers_of_writes_are_divided(flushes: int, wanted: list[int]) -> None:
    pattern = replace(PATTERN, reads=0, read_sizes={}, flushes=flushes)
    parts = plan_replica(pattern, FILE)
    assert [one["FDATASYNC"] for _, one in parts] == wanted
    assert sum(share for share, _ in parts) == pytest.approx(1)
    assert sum(share / int(str(one["FDATASYNC"])) for share, one in parts) == pytest.approx(flushes / pattern.writes)


@pytest.mark.parametrize(("flushes", "wanted"), [(0, 0), (2990, 1), (6000, 1), (1500, 2), (31, 97)])
def test_flushes_near_a_whole_number_of_writes_are_rounded(flushes: int, wanted: int) -> None:
    ((share, variables),) = plan_replica(replace(PATTERN, reads=0, read_sizes={}, flushes=flushes), FILE)
    assert (share, variables["FDATASYNC"]) == (1.0, wanted)


def test_replica_divides_the_file_among_jobs() -> None:
    found = plan_replica(change_parallelism(PATTERN), FILE)[0][1]
    assert (found["JOBS"], found["DEPTH"], found["PART"]) == (8, 4, 8 << 20)
    shifted = plan_replica(replace(PATTERN, shift_bytes=16384), FILE)[0][1]
    assert int(str(shifted["SHIFT"])) + int(str(shifted["PART"])) <= FILE.bytes


def test_percentages_sum_to_a_hundred() -> None:
    sizes = {4096 * (1 + number): 1 + number % 7 for number in range(90)}
    split = [part.split("/") for part in write_bssplit(sizes).split(":")]
    assert sum(int(share) for _, share in split) == 100
    assert len(split) <= 60


def test_rare_size_that_carries_many_bytes_stays() -> None:
    assert write_bssplit({4096: 9990, 1 << 20: 10}) == "4096/99:1048576/1"
    assert write_bssplit({4096: 9990, 8192: 10}) == "4096/100"


def test_the_most_frequent_size_stays_where_the_shares_of_others_are_rounded_up() -> None:
    sizes = {512 * (2 + number): 155 for number in range(58)} | {512: 1000}
    shares = dict(part.split("/") for part in write_bssplit(sizes).split(":"))
    assert int(shares["512"]) in (9, 10)
    assert all(1 <= int(share) <= 2 for size, share in shares.items() if size != "512")


def test_units_that_are_filled_in_part_are_counted_per_operation() -> None:
    pattern = replace(PATTERN, writes=300, write_sizes={4096: 2, 12288: 1, 65536: 1}, operations=100.0)
    # Of four writes two lie in one unit each, one may lie in two, and one fills whole units.
    assert count_partly_filled(pattern, 32768) == pytest.approx(3.0 * (2 + 2) / 4)
    assert count_partly_filled(replace(pattern, write_sizes={32768: 9}), 32768) == 0
    assert count_partly_filled(replace(pattern, writes=0, write_sizes={}), 32768) == 0
