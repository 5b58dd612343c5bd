"""Files behind inodes and addresses: real trees, real devices, profiles in the form of the monitor."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Loop, open_loop

from knobscope.devices.extents import inspect_file
from knobscope.watch import FileTree, name_file, name_files, read_tree
from knobscope.watch.files import mounts_on, search_device

pytestmark = pytest.mark.real
Row = dict[str, Any]


def device_of(path: Path) -> str:
    number = path.stat().st_dev
    return f"{os.major(number)}:{os.minor(number)}"


def counted(file: Path | None, name: str, requests: int, op: str = "write", sequential: int = 0) -> Row:
    """A row of the monitor; without a file it is of the file system itself."""
    return {
        "device": device_of(file) if file else None,
        "inode": file.stat().st_ino if file else 0,
        "generation": inspect_file(file).generation if file and file.is_file() else None,
        "name": name,
        "op": op,
        "requests": requests,
        "bytes": requests * 4096,
        "sequential_requests": sequential,
        "sequential_share": sequential / requests,
        "append_share": 0.0,
        "strided_share": 0.0,
        "random_share": 1 - sequential / requests,
        "pattern": "sequential" if sequential == requests else "random",
    }


def profile_of(files: list[Row], addresses: list[Row], writes: int, **more: Any) -> Row:
    total = {"op": "write", "requests": writes, "bytes": writes * 4096}
    flush = {"op": "flush", "requests": 7, "bytes": 0}
    return {"monitor": "bpf", "files": files, "addresses": addresses, "io_profile": [total, flush], **more}


def write_file(path: Path, blocks: int) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    with path.open("wb") as opened:
        opened.write(os.urandom(blocks * 4096))
        opened.flush()
        os.fsync(opened.fileno())
    return path


def address_row(file: Path, block: int, requests: int = 1) -> Row:
    """A request of a block of a file as the kernel sees it when it cannot tell the file."""
    (extent,) = (e for e in inspect_file(file).extents if e.offset <= block * 4096 < e.offset + e.length)
    sector = (extent.address + block * 4096 - extent.offset) // 512
    return {"op": "write", "sector": sector, "requests": requests, "bytes": requests * 4096}


@pytest.fixture(scope="module", params=["ext4", "xfs"])
def disk(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with open_loop(tmp_path_factory.mktemp("disk") / "image", 300, request.param) as opened:
        yield opened


@pytest.fixture
def data(disk: Loop, request: Any) -> Path:
    assert disk.mount is not None
    directory = disk.mount / request.node.name.split("[")[0]
    directory.mkdir()
    return directory


def test_inodes_get_their_path(data: Path) -> None:
    table = write_file(data / "base/5/16384", 4)
    trees = [read_tree(data)]
    assert name_file(counted(table, "16384", 1), trees) == ("base/5/16384", "path")
    assert trees[0].device == device_of(data)


def test_a_renamed_file_keeps_the_name_that_it_was_used_under(data: Path) -> None:
    """A segment of a log that is used again under a new name; a table that gets its name when it is complete."""
    segment, table = write_file(data / "log/0001", 1), data / "tables/7.part"
    before = read_tree(data)
    segment.rename(data / "log/0009")
    written = counted(write_file(table, 1), "7.part", 1)
    table.rename(data / "tables/7.sst")
    trees = [before, read_tree(data)]
    assert name_file(counted(data / "log/0009", "0001", 1), trees) == ("log/0001", "path")
    assert name_file(written, trees) == ("tables/7.sst", "path")  # no tree has the name of then


def test_a_file_that_took_the_inode_of_a_deleted_one_gets_nothing_of_it(data: Path) -> None:
    log = write_file(data / "wal.log", 1)
    row, trees = counted(log, "wal.log", 20), [read_tree(data)]
    log.unlink()
    table = write_file(data / "table.sst", 1)
    later = read_tree(data)
    theirs = {**row, "inode": table.stat().st_ino}  # most file systems give it the same inode at once
    assert name_file(theirs, [later]) == ("wal.log", "name")
    assert name_file(row, [*trees, later]) == ("wal.log", "path")
    assert name_file(counted(table, "table.sst", 5), [*trees, later]) == ("table.sst", "path")


def test_a_removed_file_is_known_by_the_earlier_tree_if_the_name_agrees(data: Path) -> None:
    gone = write_file(data / "tmp/sort1", 1)
    row, before = counted(gone, "sort1", 1), read_tree(data)
    gone.unlink()
    trees = [before, read_tree(data)]
    assert name_file(row, trees) == ("tmp/sort1", "path")
    reused = {**row, "name": "other", "generation": row["generation"] + 1}
    assert name_file(reused, trees) == ("other", "name")


def test_a_file_that_came_and_went_keeps_its_last_name(data: Path) -> None:
    trees = [read_tree(data), read_tree(data)]
    assert name_file({"device": device_of(data), "inode": 4711, "name": "db-journal"}, trees) == ("db-journal", "name")
    assert name_file({"device": None, "inode": 0, "name": "journal"}, trees) == ("journal", "pseudo")


def test_the_same_inode_of_another_file_system_is_another_file(data: Path) -> None:
    table = write_file(data / "table", 1)
    row = {**counted(table, "elsewhere", 1), "device": "9:9"}
    assert name_file(row, [read_tree(data)]) == ("elsewhere", "name")


def test_addresses_find_their_file_before_and_after(data: Path) -> None:
    table, short = write_file(data / "table", 64), write_file(data / "short", 8)
    early = address_row(short, 3)
    before = read_tree(data)
    short.unlink()
    grown = write_file(data / "grown", 16)
    rows = name_files(
        profile_of([], [address_row(table, 63, 5), address_row(grown, 15, 2), early], 8), [before, read_tree(data)]
    )
    found = {row["file"]: row["requests"] for row in rows}
    assert found["table"] == 5
    assert found["grown"] >= 2  # its blocks may be those that `short` gave back
    assert sum(found.values()) == 8
    assert {row["pattern"] for row in rows} == {None}
    assert all(row["address_requests"] == row["requests"] for row in rows)


def test_rows_add_up_to_the_device_and_flushes_have_no_file(data: Path) -> None:
    table = write_file(data / "table", 8)
    files = [counted(table, "table", 10, sequential=10), counted(None, "journal", 30)]
    rows = name_files(profile_of(files, [address_row(table, 2, 4)], 50), [read_tree(data)])
    by_file = {row["file"]: row for row in rows}
    assert {file: row["requests"] for file, row in by_file.items()} == {"table": 14, "journal": 30, "unknown": 6}
    assert sum(row["bytes"] for row in rows) == 50 * 4096
    assert by_file["table"]["address_requests"] == 4
    assert (by_file["table"]["pattern"], by_file["table"]["sequential_share"]) == ("sequential", 1.0)
    assert {row["op"] for row in rows} == {"write"}


def test_files_made_anew_under_a_name_are_one(data: Path) -> None:
    named = {"device": device_of(data), "name": "db-journal"}
    first, second = counted(data, "", 30, sequential=30), counted(data, "", 10)
    files = [{**first, **named, "inode": 901}, {**second, **named, "inode": 902}]
    (row,) = name_files(profile_of(files, [], 40), [read_tree(data)])
    assert (row["requests"], row["sequential_requests"], row["pattern"]) == (40, 30, "mixed")
    assert (row["sequential_share"], row["random_share"]) == (0.75, 0.25)


def test_procfs_knows_no_files(data: Path) -> None:
    assert name_files(profile_of([], [], 50, monitor="procfs"), [read_tree(data)]) == []


def test_a_whole_device_is_searched_for_what_is_missing(disk: Loop, data: Path) -> None:
    table, direct = write_file(data / "deep/er/table", 8), write_file(data / "direct", 8)
    profile = profile_of([counted(table, "table", 3)], [address_row(direct, 7, 2)], 5)
    (tree,) = search_device(disk.block, profile, data)
    assert isinstance(tree, FileTree)
    files = {row["file"]: row["requests"] for row in name_files(profile, [tree])}
    assert files == {f"{data.name}/deep/er/table": 3, f"{data.name}/direct": 2}


def test_one_mount_of_each_file_system(disk: Loop) -> None:
    assert [mount.point for mount in mounts_on(disk.block)] == [disk.mount]
