"""The disk budget of a study: what makes way, in which order, and what people are told."""

import os
from dataclasses import replace
from pathlib import Path

import pytest
from shipped_specs import shipped_study

from knobscope.durable_files import write_sealed
from knobscope.errors import UserError
from knobscope.specs import Dbms, Workload
from knobscope.stages.prepare import DiskRoom, estimate_space, prepare_snapshot
from knobscope.workflow.forecast import describe_study

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
    with pytest.raises(UserError, match=r"loading needs 909,495 TiB on .*iB are free; free some space"):
        DiskRoom("one", 1e12, tmp_path, tmp_path).require(10**18, "loading")


def sized(scratch: Path, name: str, kind: str, size: int) -> None:
    folder = scratch / "snapshots" / name
    folder.mkdir(parents=True)
    (folder / "data").write_bytes(os.urandom(size))
    write_sealed(folder / "snapshot.json", {"version": "1", "kind": kind, "files": {}})


def test_once_data_was_loaded_its_size_counts_and_no_longer_the_estimate(tmp_path: Path) -> None:
    room = DiskRoom("one", 1, tmp_path, tmp_path / "results")
    assert room.space_for("tpcc", 8 * MIB) == 8 * MIB
    sized(tmp_path, "first", "tpcc", MIB)
    sized(tmp_path, "other", "ycsb", 9 * MIB)
    snapshot(tmp_path, "of an earlier version", 100)
    assert 3 * MIB <= room.space_for("tpcc", 8 * MIB) < 4 * MIB


@pytest.mark.real
def test_a_third_load_fits_where_the_estimate_would_not(sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    """Two loads show how much the data takes; before them only the estimate is known."""
    workload = short_workload.model_copy(update={"records": 10_000})
    estimate = estimate_space(workload, None)
    results = tmp_path / "results"
    for number, page_size in enumerate((16384, 8192, 4096)):
        taken = sum(path.lstat().st_blocks * 512 for path in (tmp_path / "device").rglob("*"))
        budget = estimate + (1 << 16) if number == 0 else taken + estimate - 1
        room = DiskRoom("one", budget / 1e9, tmp_path / "device", results)
        (tmp_path / "device").mkdir(exist_ok=True)
        assert prepare_snapshot(sqlite, workload, {"page_size": page_size}, tmp_path / "device", None, room)
    assert len(list((tmp_path / "device/snapshots").iterdir())) == 3


def test_what_may_not_fit_is_said_before_anything_is_measured() -> None:
    specs = shipped_study("quickstart")
    assert "room for" not in describe_study(specs)
    name = specs.cases[0].workload
    large = specs.workloads[name].model_copy(update={"records": 5_000_000})
    said = describe_study(replace(specs, workloads={name: large}))
    assert (
        "sqlite/local-disk/ycsb-a: data of ycsb-a may take" in said and "judged by the size of the first load" in said
    )
    huge = large.model_copy(update={"records": 10**9})
    assert "refused at once" in describe_study(replace(specs, workloads={name: huge}))
