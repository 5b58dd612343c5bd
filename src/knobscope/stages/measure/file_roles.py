"""Where the I/O of a run went: files with role and table, as the spec of the DBMS and the snapshot tell them."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TypedDict, TypeVar

from knobscope.specs import Dbms
from knobscope.tables import FileRow
from knobscope.watch import FileTree, Profile, name_file, name_files
from knobscope.watch.profile import CountedAccess, CountedFaults, Finding

__all__ = ["list_files", "name_rows"]

Counted = TypeVar("Counted", CountedAccess, CountedFaults)


def list_files(profile: Profile, trees: Sequence[FileTree], dbms: Dbms, tables: Mapping[str, str]) -> list[FileRow]:
    """Return the rows of table `files`; `trees` are the data directory in the order in which it was read.

    `tables` is what the DBMS answered: file below the data directory -> table.
    """
    rows: list[FileRow] = []
    for row in name_files(profile, trees):
        _add_purpose(row, row.pop("found_by"), dbms, tables)
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
