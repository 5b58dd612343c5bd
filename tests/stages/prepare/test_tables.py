"""Which table lies in which file, as a real server answers after loading."""

from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.specs import Dbms, Workload
from knobscope.stages.prepare import Snapshot

pytestmark = pytest.mark.real


def test_postgresql_tells_the_files_of_its_tables(
    postgresql: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], open_directory: Path
) -> None:
    snapshot = prepare(postgresql, short_workload, open_directory)
    ours = [path for path, table in snapshot.tables.items() if table == "usertable"]
    assert len(ours) == 4  # the table, its primary key, its TOAST table and the index of that
    assert all((snapshot.data / path).is_file() for path in ours)
    largest = max((snapshot.data / "base").rglob("*"), key=lambda path: path.stat().st_size)
    path = str(largest.relative_to(snapshot.data))
    assert postgresql.files.table_of(path, snapshot.tables) == "usertable"
    assert postgresql.files.role_of(path) == "data"


def test_sqlite_has_one_file_and_is_asked_nothing(
    sqlite: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], tmp_path: Path
) -> None:
    assert prepare(sqlite, short_workload, tmp_path).tables == {}
