"""Where the I/O of a run went: files with role and table, as the spec of the DBMS and the snapshot tell them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict, TypeVar

from knobscope.specs import Dbms
from knobscope.tables import FileRow
from knobscope.tables.waits import WaitFileRow
from knobscope.watch import FileTree, Profile, name_file, name_files
from knobscope.watch.profile import CountedAccess, CountedFaults, CountedWaitFile, Finding

Counted = TypeVar("Counted", CountedAccess, CountedFaults)


def list_files(profile: Profile, trees: Sequence[FileTree], dbms: Dbms, tables: Mapping[str, str]) -> list[FileRow]:
    """Return the rows of table `files`; `trees` are the data directory in the order in which it was read.

    `tables` is what the DBMS answered: file below the data directory -> table.
    """
    rows: list[FileRow] = []
    for row in name_files(profile, trees):
        found_by = row.pop("found_by")
        _add_purpose(row, found_by, dbms, tables)
        if found_by == "name" and row["role"] == "other" and profile["scope"] == "process":
            row["role"] = "unknown"  # the device is shared: it may be a file of a program, as a .pyc of Python
        rows.append(row)
    return rows


def name_rows(
    rows: Iterable[Counted], trees: Sequence[FileTree], dbms: Dbms, tables: Mapping[str, str]
) -> Iterator[Counted]:
    """Yield rows with device, inode and name of a file as rows with `file`, `role` and `table_name`.

    Files of programs are left out: they are not the DBMS's.
    """
    for row in rows:
        file, found_by = name_file(row, trees)
        if found_by == "pseudo":
            continue
        named = row.copy()
        named.pop("name")
        named.pop("generation", None)
        named["file"] = file
        _add_purpose(named, found_by, dbms, tables)
        yield named


def sum_waits_by_file(
    rows: Iterable[CountedWaitFile], trees: Sequence[FileTree], dbms: Dbms, tables: Mapping[str, str]
) -> list[WaitFileRow]:
    """Return the rows of table `wait_files`, the longest time first; what is no file of the data is `unknown` there."""
    sums: dict[tuple[str, int | None, str], WaitFileRow] = {}
    for row in rows:
        file, found_by = name_file(row, trees)
        inode = None if found_by == "pseudo" else row["inode"]
        empty: WaitFileRow = {"file": file, "inode": inode, "reason": row["reason"]}
        total = sums.setdefault((file, inode, row["reason"]), empty)
        if "role" not in total:
            total |= {"device": None if inode is None else row["device"], "waits": 0, "time_us": 0.0, "longest_us": 0.0}
            _add_purpose(total, found_by, dbms, tables)
        total["waits"] += row["waits"]
        total["time_us"] += row["time_us"]
        total["longest_us"] = max(total["longest_us"], row["longest_us"])
    return sorted(sums.values(), key=lambda row: -row["time_us"])


class _Purpose(TypedDict, total=False):
    file: str
    role: str
    table_name: str | None


def _add_purpose(row: _Purpose, found_by: Finding, dbms: Dbms, tables: Mapping[str, str]) -> None:
    file, is_path = row["file"], found_by == "path"
    if found_by == "pseudo":
        row["role"] = "other" if file == "device" else file
    else:
        row["role"] = dbms.files.role_of(file, is_path=is_path)
    row["table_name"] = dbms.files.table_of(file, tables) if is_path else None
