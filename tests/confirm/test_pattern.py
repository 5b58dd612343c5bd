"""Patterns with one factor changed, and their words for fio."""

from dataclasses import replace
from pathlib import Path

import pytest

from knobscope.characterise.fio import Engine, FioFile
from knobscope.confirm.pattern import Pattern, change_parallelism, change_sequentiality, change_size
from knobscope.confirm.replica import describe_replica, write_bssplit

PATTERN = Pattern(
    reads=1000,
    writes=3000,
    read_sizes={16384: 1000},
    write_sizes={4096: 2000, 16384: 1000},
    read_random=0.9,
    write_random=0.25,
    flushes=300,
    depth=1.4,
)
FILE = FioFile("fio", Path("fio.data"), 64 << 20, Engine("libaio", True))


def test_size_alone_changes_and_work_stays() -> None:
    original, changed = change_size(PATTERN, 65536)
    assert original == PATTERN
    assert changed.write_sizes == {65536: 1}
    work = PATTERN.writes * PATTERN.mean_write_bytes
    changed_work = changed.writes * 65536
    assert changed.reads / changed_work == pytest.approx(PATTERN.reads / work, rel=0.01)
    assert changed.flushes / changed_work == pytest.approx(PATTERN.flushes / work, rel=0.01)
    unchanged = ("read_sizes", "read_random", "write_random", "depth", "jobs")
    assert all(getattr(changed, name) == getattr(PATTERN, name) for name in unchanged)


def test_flushes_are_left_out_where_they_would_hide_the_size() -> None:
    committing = replace(PATTERN, flushes=3000)  # one per write: fewer writes cannot carry as many
    original, changed = change_size(committing, 65536)
    assert (original.flushes, changed.flushes) == (0, 0)


def test_parallelism_alone_changes() -> None:
    original, changed = change_parallelism(PATTERN)
    assert changed.jobs * changed.depth == 32
    assert replace(changed, jobs=original.jobs, depth=original.depth) == PATTERN


def test_sequentiality_alone_changes() -> None:
    original, changed = change_sequentiality(PATTERN)
    assert (changed.read_random, changed.write_random) == (1.0, 1.0)
    assert replace(changed, read_random=original.read_random, write_random=original.write_random) == PATTERN


def test_replica_has_the_shares_of_the_pattern() -> None:
    assert describe_replica(PATTERN, FILE) == {
        "READS": 25,
        "SIZES": "16384/100,4096/67:16384/33",
        "ALIGN": "16384,4096",
        "RANDOM": "90,25",
        "FSYNC": 13,  # 10 writes per flush, and fio repeats it after a quarter of the requests, the reads
        "DEPTH": 1,
        "JOBS": 1,
        "PART": 64 << 20,
    }


def test_replica_divides_the_file_among_jobs() -> None:
    _, wide = change_parallelism(PATTERN)
    found = describe_replica(wide, FILE)
    assert (found["JOBS"], found["DEPTH"], found["PART"]) == (8, 4, 8 << 20)


def test_percentages_sum_to_a_hundred() -> None:
    sizes = {4096 * (1 + number): 1 + number % 7 for number in range(90)}
    split = [part.split("/") for part in write_bssplit(sizes).split(":")]
    assert sum(int(share) for _, share in split) == 100
    assert len(split) <= 60


def test_rare_size_that_carries_many_bytes_stays() -> None:
    assert write_bssplit({4096: 9990, 1 << 20: 10}) == "4096/99:1048576/1"
    assert write_bssplit({4096: 9990, 8192: 10}) == "4096/100"
