"""Snapshots: made once per load-time setting, whole or not at all, refused with the DBMS's words."""

import json
import os
import re
import sqlite3
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from emulated import require_loops

from knobscope.devices import open_device, take_down
from knobscope.devices.extents import inspect_file
from knobscope.errors import UserError
from knobscope.servers import copy_data, make_data_directory
from knobscope.specs import Dbms, Device, Emulation, Program, Workload
from knobscope.specs.models.lifecycle import Readback
from knobscope.stages.prepare import Snapshot, SnapshotFailedError, copy_snapshot, prepare_snapshot

pytestmark = pytest.mark.real


def test_one_snapshot_per_load_time_setting(sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    small = prepare_snapshot(sqlite, short_workload, {"page_size": 1024}, tmp_path)
    large = prepare_snapshot(sqlite, short_workload, {"page_size": 16384}, tmp_path)
    made = (small.directory / "snapshot.json").stat().st_mtime_ns
    again = prepare_snapshot(sqlite, short_workload, {"page_size": 1024}, tmp_path)
    assert again == small
    assert (small.directory / "snapshot.json").stat().st_mtime_ns == made
    for snapshot, page_size in ((small, 1024), (large, 16384)):
        with sqlite3.connect(snapshot.data / "ycsb.db") as connection:
            assert connection.execute("PRAGMA page_size").fetchone() == (page_size,)
            assert connection.execute("SELECT count(*) FROM usertable").fetchone() == (short_workload.records,)
    assert sorted(path.suffix for path in (tmp_path / "snapshots").iterdir()) == ["", ""]


def test_other_mix_same_data_other_size_other_data(
    sqlite: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], tmp_path: Path
) -> None:
    first = prepare(sqlite, short_workload, tmp_path)
    mix = {**short_workload.parameters, "readproportion": 1.0, "updateproportion": 0.0}
    assert prepare_snapshot(sqlite, short_workload.model_copy(update={"parameters": mix}), {}, tmp_path) == first
    other = prepare_snapshot(sqlite, short_workload.model_copy(update={"records": 50}), {}, tmp_path)
    assert other.directory != first.directory


def _share_in_order(snapshot: Snapshot) -> float:
    """Return the share of the table's pages that come after the one before them in the order of the key."""
    with sqlite3.connect(snapshot.data / "ycsb.db") as connection:
        query = "SELECT pageno FROM dbstat WHERE name = 'usertable' AND pagetype = 'leaf' ORDER BY path"
        pages = [page for (page,) in connection.execute(query)]
    return sum(earlier < later for earlier, later in pairwise(pages)) / (len(pages) - 1)


@pytest.mark.parametrize(
    ("order", "rewrite", "expected"),
    [
        ("shuffled", True, (1, 1)),
        pytest.param("shuffled", False, (0.4, 0.8), marks=pytest.mark.long),
        pytest.param("threads", False, (0.5, 0.98), marks=pytest.mark.long),
        pytest.param("ordered", False, (1, 1), marks=pytest.mark.long),
    ],
)
def test_the_table_is_stored_in_the_order_that_was_requested(
    sqlite: Dbms, short_workload: Workload, tmp_path: Path, order: str, rewrite: bool, expected: tuple[float, float]
) -> None:
    parameters = {**short_workload.parameters, "load_order": order, "rewrite": rewrite, "fieldlength": 90}
    workload = short_workload.model_copy(update={"parameters": parameters, "records": 10_000})
    low, high = expected
    assert low <= _share_in_order(prepare_snapshot(sqlite, workload, {}, tmp_path)) <= high


@pytest.mark.long
def test_postgresql_rewrites_its_table(postgresql: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    parameters = {**short_workload.parameters, "rewrite": True}
    workload = short_workload.model_copy(update={"parameters": parameters})
    tables = prepare_snapshot(postgresql, workload, {}, tmp_path).tables
    usual = prepare_snapshot(postgresql, short_workload, {}, tmp_path).tables
    files = [{file for file, table in each.items() if table == "usertable"} for each in (tables, usual)]
    assert files[0]
    assert not files[0] & files[1]  # the files are named as they are after the rewrite


def test_a_load_that_fails_leaves_no_snapshot(sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    broken = sqlite.model_copy(
        update={"loading": sqlite.loading.model_copy(update={"tables": ["create table usertable (x int)"]})}
    )
    with pytest.raises(SnapshotFailedError) as caught:
        prepare_snapshot(broken, short_workload, {}, tmp_path)
    assert caught.value.log_tail
    assert not list((tmp_path / "snapshots").glob("*/snapshot.json"))


def test_a_command_that_fails_is_told_with_its_complaint(
    postgresql: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    assert postgresql.lifecycle
    lifecycle = postgresql.lifecycle.model_copy(update={"init": ["initdb", "--no-such-option"]})
    with pytest.raises(SnapshotFailedError) as caught:
        prepare_snapshot(postgresql.model_copy(update={"lifecycle": lifecycle}), short_workload, {}, tmp_path)
    said = r"while data was loaded: \S*initdb ended with exit code 1; first complaint of its log: .*unrecognized option"
    assert re.match(said, str(caught.value))


def test_a_setting_that_does_not_take_is_refused(sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    with pytest.raises(SnapshotFailedError, match="page_size"):
        prepare_snapshot(sqlite, short_workload, {"page_size": 1000}, tmp_path)  # no power of two: ignored


def test_a_dbms_that_reports_only_what_it_was_told_is_not_asked_where_nothing_was(
    sqlite: Dbms, short_workload: Workload, tmp_path: Path
) -> None:
    """Its answer has no knob, as that of a wrong parser."""
    told = {
        "programs": {"say": Program(find=["echo"], package="coreutils")},
        "readback": Readback(command=["say", "{{}}"], parser="json"),
    }
    assert prepare_snapshot(sqlite.model_copy(update=told), short_workload, {}, tmp_path).data.is_dir()


def test_a_full_disk_is_said_before_loading(sqlite: Dbms, short_workload: Workload, tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"[GM]iB are free; free some space"):
        prepare_snapshot(sqlite, short_workload.model_copy(update={"records": 10**12}), {}, tmp_path)


def test_a_copy_shares_no_block(tmp_path: Path) -> None:
    """On XFS, where it could: each write of a run would move a block, as it does in no database of a user."""
    require_loops()
    emulation = Emulation(image_directory=str(tmp_path), size="300MiB", filesystem="xfs")
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    with open_device(device, tmp_path, "study") as opened:
        source, target = opened.directory / "source", opened.directory / "target"
        make_data_directory(source)
        (source / "file").write_bytes(os.urandom(1 << 20))
        copy_data(source, target)
        assert (target / "file").read_bytes() == (source / "file").read_bytes()
        blocks = [inspect_file(directory / "file").extents for directory in (source, target)]
    take_down(device, tmp_path)
    assert blocks[0]
    assert not {extent.address for extent in blocks[0]} & {extent.address for extent in blocks[1]}


def test_a_copy_is_equal_and_apart(
    sqlite: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], tmp_path: Path
) -> None:
    snapshot = prepare(sqlite, short_workload, tmp_path)
    copy_snapshot(snapshot, tmp_path / "copy")
    assert (tmp_path / "copy/ycsb.db").read_bytes() == (snapshot.data / "ycsb.db").read_bytes()
    (tmp_path / "copy/ycsb.db").write_bytes(b"")
    assert (snapshot.data / "ycsb.db").stat().st_size > 0
    assert json.loads((snapshot.directory / "snapshot.json").read_text())["version"] == "3.46.1"
