"""The busiest files of a window with the DBMS's names for them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from knobscope.specs import Dbms
from knobscope.stages.measure.file_roles import list_files
from knobscope.watch import FileTree, Profile, name_files


@dataclass(frozen=True)
class BusyFile:
    """Requests to a file; `purpose`: table, or what kind of file it is to the DBMS."""

    name: str
    purpose: str
    op: str
    requests: int
    bytes: int


def list_busy(
    profile: Profile, trees: Sequence[FileTree], dbms: Dbms | None, tables: Mapping[str, str]
) -> list[BusyFile]:
    """Return files by bytes, the busiest first; `tables`: file -> table, as the DBMS answered."""
    rows = name_files(profile, trees) if dbms is None else list_files(profile, trees, dbms, tables)
    files = [
        BusyFile(
            row["file"], _name_purpose(row.get("role"), row.get("table_name")), row["op"], row["requests"], row["bytes"]
        )
        for row in rows
    ]
    return sorted(files, key=lambda file: -file.bytes)


def _name_purpose(role: str | None, table: str | None) -> str:
    if table is not None:
        return f"table {table}"
    return "" if role in (None, "other", "unknown", "journal", "metadata") else role
