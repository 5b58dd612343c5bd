"""The files of a run get role and table from spec and snapshot."""

import os
import shutil
from collections.abc import Callable
from mmap import PROT_READ, mmap
from pathlib import Path
from typing import Any

import pytest
from emulated import require_loops

from knobscope.devices import open_device, take_down
from knobscope.specs import Dbms, Device, Emulation, Workload
from knobscope.stages.measure.file_roles import list_files, name_rows
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import Snapshot
from knobscope.tables import TABLES, write_table
from knobscope.watch import FileTree, open_watch, read_program_files, read_tree

Row = dict[str, Any]
TABLES_OF_RUN = {"base/5/16384": "usertable"}


def tree_of(root: Path) -> FileTree:
    for name in ("base/5/16384.1", "pg_wal/0001", "pg_stat/x"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(b"x")
    return read_tree(root)


def row(root: Path, name: str, **more: Any) -> Row:
    found = (root / name).stat()
    device = f"{os.major(found.st_dev)}:{os.minor(found.st_dev)}"
    shares = {"sequential_share": 1.0, "append_share": 1.0, "strided_share": 0.0, "random_share": 0.0}
    order = {**shares, "pattern": "sequential"}
    return {
        "device": device,
        "inode": found.st_ino,
        "name": Path(name).name,
        "op": "write",
        "bytes": 8192,
        **order,
        **more,
    }


def test_roles_and_tables_and_a_whole_sum(tmp_path: Path, postgresql: Dbms) -> None:
    trees = [tree_of(tmp_path)]
    counts = {"requests": 2, "sequential_requests": 2}
    files = [row(tmp_path, name, **counts) for name in ("base/5/16384.1", "pg_wal/0001", "pg_stat/x")]
    gone = {**files[0], "inode": 99, "name": "pgsql_tmp77.1"}
    journal = {**files[0], "device": None, "inode": 0, "name": "journal"}
    total = {"op": "write", "requests": 11, "bytes": 11 * 4096}
    profile = {"monitor": "bpf", "files": [*files, gone, journal], "addresses": [], "io_profile": [total]}
    rows = list_files(profile, trees, postgresql, TABLES_OF_RUN)
    assert {(one["file"], one["role"], one["table_name"]) for one in rows} == {
        ("base/5/16384.1", "data", "usertable"),
        ("pg_wal/0001", "log", None),
        ("pg_stat/x", "other", None),
        ("pgsql_tmp77.1", "temp", None),
        ("journal", "journal", None),
        ("unknown", "unknown", None),
    }
    assert sum(one["requests"] for one in rows) == 11
    write_table(tmp_path / "files.parquet", "files", ({"run_id": "r", **one} for one in rows))


def test_a_file_of_a_shared_device_that_fits_no_pattern_may_be_a_programs(tmp_path: Path, postgresql: Dbms) -> None:
    """Python reads its .pyc files on the disk of the data, say; on a device of its own all files are the DBMS's."""
    trees = [tree_of(tmp_path)]
    counts = {"requests": 2, "sequential_requests": 2}
    known = row(tmp_path, "pg_stat/x", **counts)
    files = [known, *({**known, "inode": 99 + at, "name": name} for at, name in enumerate(("a.pyc", "pgsql_tmp7.1")))]
    profile = {"monitor": "bpf", "files": files, "addresses": [], "io_profile": []}
    for scope, role in (("process", "unknown"), ("device", "other")):
        rows = list_files({**profile, "scope": scope}, trees, postgresql, TABLES_OF_RUN)
        roles = {one["file"]: one["role"] for one in rows}
        assert roles == {"pg_stat/x": "other", "a.pyc": role, "pgsql_tmp7.1": "temp"}


def test_files_that_a_program_has_mapped_outside_the_data_are_not_the_dbms(tmp_path: Path, postgresql: Dbms) -> None:
    """As Java's class archive is, which the load client maps; a mapped file of the data stays one."""
    table, archive = tmp_path / "data/base/5/16384.1", tmp_path / "classes.jsa"
    trees = [tree_of(tmp_path / "data")]
    archive.write_bytes(b"x")
    counts = {"requests": 2, "sequential_requests": 2}
    files = [row(tmp_path, str(file.relative_to(tmp_path)), **counts) for file in (table, archive)]
    files += [{**files[1], "inode": 99, "name": "pgsql_tmp77.1"}]  # came and went: nobody maps it
    with (
        table.open("rb") as one,
        archive.open("rb") as other,
        mmap(one.fileno(), 0, prot=PROT_READ),
        mmap(other.fileno(), 0, prot=PROT_READ),
    ):
        trees += read_program_files(trees)
    total = {"op": "write", "requests": 7, "bytes": 7 * 4096}
    profile = {"monitor": "bpf", "files": files, "addresses": [], "io_profile": [total]}
    rows = list_files(profile, trees, postgresql, TABLES_OF_RUN)
    assert {(one["file"], one["role"], one["requests"]) for one in rows} == {
        ("base/5/16384.1", "data", 2),
        ("pgsql_tmp77.1", "temp", 2),
        ("unknown", "unknown", 3),  # with the one that no file was counted for
    }
    named = name_rows(files, trees, postgresql, TABLES_OF_RUN)
    assert [one["file"] for one in named] == ["base/5/16384.1", "pgsql_tmp77.1"]


@pytest.mark.real
@pytest.mark.parametrize("filesystem", ["ext4", pytest.param("xfs", marks=pytest.mark.long)])
def test_a_real_run_adds_up_to_what_the_device_saw(
    sqlite: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], tmp_path: Path, filesystem: str
) -> None:
    require_loops()
    emulation = Emulation.model_validate({"image_directory": str(tmp_path), "size": "300MiB", "filesystem": filesystem})
    device = Device(name="loop", description="emulated", tier="auto", emulate=emulation)
    try:
        with open_device(device, tmp_path, "study") as opened:
            snapshot = prepare(sqlite, short_workload, opened.directory)
            with open_watch(opened.block, unit=4096, scope="device") as watch:
                if watch.monitor != "bpf":
                    pytest.skip(f"BPF cannot be used here: {watch.reason}")
                bench = Bench(sqlite, short_workload, opened.directory, watch)
                record = measure_run(bench, "run", {"journal_mode": "delete", "synchronous": "full"}, snapshot)
            shutil.rmtree(snapshot.directory.parent)
            shutil.rmtree(opened.directory / "runs")
    finally:
        take_down(device, tmp_path)
    assert record["run"]["status"] == "ok", record["run"]
    for total in record["io_profile"]:
        rows = [one for one in record["files"] if one["op"] == total["op"]]
        if total["op"] != "flush":
            assert sum(one["requests"] for one in rows) == total["requests"]
            assert sum(one["bytes"] for one in rows) == total["bytes"]
    written = {one["role"]: one["requests"] for one in record["files"] if one["op"] == "write"}
    assert min(written["data"], written["log"], written["journal"]) > 0
    assert written.get("unknown", 0) <= 0.02 * sum(written.values())


def test_system_calls_name_files_in_the_same_words(tmp_path: Path, postgresql: Dbms) -> None:
    trees = [tree_of(tmp_path)]
    calls = [row(tmp_path, "base/5/16384.1", calls=3)]
    (named,) = name_rows(calls, trees, postgresql, TABLES_OF_RUN)
    assert (named["file"], named["role"], named["table_name"]) == ("base/5/16384.1", "data", "usertable")
    assert set(named) <= set(TABLES["file_access"])
