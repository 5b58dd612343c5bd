"""Reads a trace that the monitor recorded (`knobscope watch --trace`): a directory, or its events.parquet alone."""

from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.commands.trace.columns import COLUMNS, MAX_SECTOR, MAX_SECTORS, MAX_TIME_NS, OPERATIONS, Counts, quote
from knobscope.commands.trace.limits import MOST_REQUESTS
from knobscope.errors import UserError
from knobscope.tables import TRACE_TABLES

if TYPE_CHECKING:
    import duckdb

_WHOLE = {f"{sign}{size}INT" for sign in ("", "U") for size in ("TINY", "SMALL", "BIG")} | {"INTEGER", "UINTEGER"}
_NEEDED = ("ts_ns", "lba", "bytes", "op")
#: Column -> the least and the largest number that can be true.
_LIMITS = {
    "ts_ns": (-MAX_TIME_NS, MAX_TIME_NS),
    "lba": (0, MAX_SECTOR),
    "bytes": (0, MAX_SECTORS * 512),
    "op": (0, len(OPERATIONS) - 1),
    "lat_ns": (0, MAX_TIME_NS),
    "wait_ns": (-MAX_TIME_NS, MAX_TIME_NS),
    "offset": (0, MAX_SECTOR * 512),
    "queue": (0, 1 << 16),
}


def read_recorded(connection: "duckdb.DuckDBPyConnection", path: Path) -> Counts:
    """Make table `raw` of events.parquet; duration and lost events come from lost.parquet next to it."""
    events = path / "events.parquet" if path.is_dir() else path
    if not events.exists():
        raise UserError(f"{path} is a directory without events.parquet; expected what `watch --trace` wrote")
    source = f"read_parquet({quote(str(events))})"
    has = {row[0]: row[1] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}  # noqa: S608
    missing = [name for name in ("ts_ns", "lba", "bytes", "op", "lat_ns") if name not in has]
    if missing:
        raise UserError(f"{events}: no column {', '.join(missing)}; expected {', '.join(TRACE_TABLES['events'])}")
    for name, kind in has.items():
        wanted = "VARCHAR" if name == "op" else COLUMNS.get(name, kind)
        if kind != wanted and not (wanted in _WHOLE and kind in _WHOLE):
            raise UserError(f"{events}: column {name} has type {kind}; expected {wanted}")
    columns = ", ".join(f'"{name}"' for name in COLUMNS if name in has and name != "op")
    branches = " ".join(f"WHEN '{word}' THEN {index}" for index, word in enumerate(OPERATIONS))
    connection.execute(
        f"CREATE TABLE raw AS SELECT {columns}, (CASE op {branches} END)::UTINYINT AS op FROM {source} "  # noqa: S608
        f"LIMIT {MOST_REQUESTS + 1}"
    )
    for name, (least, most) in _LIMITS.items():
        optional = "false" if name in _NEEDED else "NULL"
        if name in has and (
            violations := connection.execute(
                f'SELECT "{name}" FROM raw WHERE NOT coalesce("{name}" BETWEEN {least} AND {most}, '  # noqa: S608
                f"{optional}) LIMIT 1"
            ).fetchall()
        ):
            found_text = "an operation of another name" if name == "op" else violations[0][0]
            expected = ", ".join(OPERATIONS) if name == "op" else f"{least} to {most}"
            raise UserError(f"{events}: column {name}: found {found_text}; expected {expected}")
    counts = Counts()
    lost = events.with_name("lost.parquet")
    if lost.exists():
        counts.duration_ns, counts.lost_events = connection.execute(
            "SELECT max(try_cast(ts_ns AS BIGINT)), coalesce(sum(try_cast(lost AS BIGINT)), 0)::BIGINT "
            "FROM read_parquet(?)",
            [str(lost)],
        ).fetchall()[0]
    return counts
