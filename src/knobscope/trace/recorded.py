"""Reads a trace that the monitor recorded (`knobscope watch --trace`): a directory, or its events.parquet alone."""

from pathlib import Path
from typing import TYPE_CHECKING

from knobscope.errors import UserError
from knobscope.tables import TRACE_TABLES
from knobscope.trace.columns import COLUMNS, OPERATIONS, Counts, quote

if TYPE_CHECKING:
    import duckdb

__all__ = ["read_recorded"]


def read_recorded(connection: "duckdb.DuckDBPyConnection", path: Path) -> Counts:
    """Make view `raw` of events.parquet; duration and lost events come from lost.parquet beside it."""
    events = path / "events.parquet" if path.is_dir() else path
    if not events.exists():
        raise UserError(f"{path} is a directory without events.parquet; expected what `watch --trace` wrote")
    source = f"read_parquet({quote(str(events))})"
    has = {row[0] for row in connection.execute(f"DESCRIBE SELECT * FROM {source}").fetchall()}  # noqa: S608
    missing = [name for name in ("ts_ns", "lba", "bytes", "op", "lat_ns") if name not in has]
    if missing:
        raise UserError(f"{events}: no column {', '.join(missing)}; expected {', '.join(TRACE_TABLES['events'])}")
    kept = ", ".join(f'"{name}"' for name in COLUMNS if name in has and name != "op")
    words = " ".join(f"WHEN '{word}' THEN {index}" for index, word in enumerate(OPERATIONS))
    connection.execute(
        f"CREATE VIEW raw AS SELECT {kept}, (CASE op {words} END)::UTINYINT AS op FROM {source}"  # noqa: S608
    )
    counts = Counts()
    lost = events.with_name("lost.parquet")
    if lost.exists():
        counts.duration_ns, counts.lost_events = connection.execute(
            "SELECT max(ts_ns), coalesce(sum(lost), 0)::BIGINT FROM read_parquet(?)", [str(lost)]
        ).fetchall()[0]
    return counts
