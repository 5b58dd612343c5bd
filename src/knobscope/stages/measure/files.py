"""Where the I/O of a run went: files with role and table, as the spec of the DBMS and the snapshot tell them."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from knobscope.specs import Dbms
from knobscope.tables import FileRow
from knobscope.watch import FileTree, Profile, name_file, name_files

__all__ = ["list_files", "name_rows"]


def list_files(profile: Profile, trees: Sequence[FileTree], dbms: Dbms, tables: Mapping[str, str]) -> list[FileRow]:
    """Return the rows of table `files`; `trees` are the data directory in the order in which it was read.

    `tables` is what the DBMS answered: file below the data directory -> table.
    """
    rows = [_with_purpose(row, row.pop("found_by"), dbms, tables) for row in name_files(profile, trees)]
    return cast("list[FileRow]", rows)


def name_rows(
    rows: Sequence[Mapping[str, Any]], trees: Sequence[FileTree], dbms: Dbms, tables: Mapping[str, str]
) -> list[dict[str, Any]]:
    """Return rows with device, inode and name of a file as rows with `file`, `role` and `table_name`.

    Files of programs are left out: they are not the DBMS's.
    """
    named = []
    for row in rows:
        file, found_by = name_file(row, trees)
        if found_by == "pseudo":
            continue
        rest = {key: value for key, value in row.items() if key not in ("name", "generation")}
        named.append(_with_purpose({**rest, "file": file}, found_by, dbms, tables))
    return named


def _with_purpose(row: dict[str, Any], found_by: str, dbms: Dbms, tables: Mapping[str, str]) -> dict[str, Any]:
    file = row["file"]
    if found_by == "pseudo":
        return {**row, "role": "other" if file == "device" else file, "table_name": None}
    is_path = found_by == "path"
    table = dbms.files.table_of(file, tables) if is_path else None
    return {**row, "role": dbms.files.role_of(file, is_path=is_path), "table_name": table}
