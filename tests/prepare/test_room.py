"""The disk budget of a study: what makes way, in which order, and what people are told."""

import os
from pathlib import Path

import pytest

from knobscope.errors import UserError
from knobscope.prepare import DiskRoom

MIB = 1 << 20


def snapshot(scratch: Path, name: str, used_at: int) -> Path:
    folder = scratch / "snapshots" / name
    folder.mkdir(parents=True)
    (folder / "data").write_bytes(os.urandom(MIB))
    (folder / "snapshot.json").write_text("{}")
    os.utime(folder / "snapshot.json", (used_at, used_at))
    return folder


def test_the_snapshot_of_the_longest_time_ago_makes_way_and_no_more_than_need_to(tmp_path: Path) -> None:
    older, newer = snapshot(tmp_path, "older", 100), snapshot(tmp_path, "newer", 200)
    room = DiskRoom("one", 4 * MIB / 1e9, tmp_path, tmp_path / "results")
    room.require(MIB, "loading")
    assert older.exists()
    assert room.largest_copy() >= MIB
    room.require(2 * MIB, "loading")
    assert not older.exists()
    assert newer.exists()


def test_what_is_in_use_stays_and_the_error_says_what_to_do(tmp_path: Path) -> None:
    kept = snapshot(tmp_path, "kept", 100)
    room = DiskRoom("one", 2 * MIB / 1e9, tmp_path, tmp_path / "results")
    room.keep(kept)
    with pytest.raises(UserError, match=r"study one: loading needs 0.00105 GB.*raise `budget.disk_gb`, or remove"):
        room.require(MIB, "loading")
    assert kept.exists()


def test_results_count(tmp_path: Path) -> None:
    results = tmp_path / "results"
    results.mkdir()
    (results / "trace").write_bytes(os.urandom(3 * MIB))
    with pytest.raises(UserError, match="more than its budget"):
        DiskRoom("one", 3 * MIB / 1e9, tmp_path / "scratch", results).require(MIB, "loading")


def test_a_full_disk_is_no_matter_of_the_budget(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"loading needs 1e\+09 GB on .*free some space"):
        DiskRoom("one", 1e12, tmp_path, tmp_path).require(10**18, "loading")
