"""The files of a run get role and table from spec and snapshot."""

import os
from pathlib import Path
from typing import Any

from knobscope.measure.files import describe_files, describe_named
from knobscope.specs import Dbms
from knobscope.tables import TABLES, write_table
from knobscope.watch import FileTree, read_tree

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
    order = {"sequential_share": 1.0, "strided_share": 0.0, "random_share": 0.0, "pattern": "sequential"}
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
    rows = describe_files(profile, trees, postgresql, TABLES_OF_RUN)
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


def test_system_calls_name_files_in_the_same_words(tmp_path: Path, postgresql: Dbms) -> None:
    trees = [tree_of(tmp_path)]
    calls = [row(tmp_path, "base/5/16384.1", calls=3)]
    (named,) = describe_named(calls, trees, postgresql, TABLES_OF_RUN)
    assert (named["file"], named["role"], named["table_name"]) == ("base/5/16384.1", "data", "usertable")
    assert set(named) <= set(TABLES["file_access"])
