"""Single requests of a run that left a trace: the offset in the file over time, as points."""

from pathlib import Path
from typing import Any

from knobscope.formats import format_count, plural
from knobscope.report.figures import Figure, Point, draw_scatter, slug
from knobscope.report.study_data import Row, StudyData
from knobscope.specs import Case

__all__ = ["scatter_figures"]

_MOST_FILES = 4
#: Points of one picture: cells of this many columns and rows, and no more of them than this.
_COLUMNS, _ROWS, _MOST_POINTS = 160, 70, 3000


def scatter_figures(data: StudyData, case: Case, traces: Path) -> list[Figure]:
    """Return a picture for each of the busiest files of one traced run, the default configuration's if there is one."""
    runs = data.rows(
        "SELECT run_id, is_sentinel FROM runs WHERE dbms = ? AND device = ? AND workload = ? "
        "ORDER BY is_sentinel DESC, started_at",
        case.dbms, case.device, case.workload,
    )  # fmt: skip
    traced = [(row, file) for row in runs if (file := traces / row["run_id"] / "events.parquet").is_file()]
    if not traced:
        return []
    run, events = traced[0]
    files = data.rows(
        """
        SELECT coalesce(file, '') AS file, count(*) AS requests, count("offset") > 0 AS has_offset
        FROM read_parquet(?) WHERE op IN ('read', 'write') GROUP BY ALL ORDER BY requests DESC, file LIMIT ?
        """,
        str(events), _MOST_FILES,
    )  # fmt: skip
    return [_scatter(data, case, run, events, file) for file in files]


def _scatter(data: StudyData, case: Case, run: Row, events: Path, file: Row) -> Figure:
    cells = _read_cells(data, events, file)
    points: dict[str, list[Point]] = {}
    for cell in cells:
        points.setdefault(cell["op"], []).append((cell["second"], cell["byte_offset"]))
    seconds = max((cell["seconds"] for cell in cells), default=1.0)
    highest = max((cell["highest"] for cell in cells), default=1.0)
    label = "offset in the file" if file["has_offset"] else "address on the device"
    name = file["file"] or "requests without a known file"
    which = "the default configuration" if run["is_sentinel"] else "a changed configuration"
    return Figure(
        name=slug("trace", *str(case).split("/"), name),
        title=name,
        description=f"{plural(file['requests'], 'request')} of {name} over the seconds of a run, by {label}.",
        draw=lambda width: draw_scatter(width, points, seconds, highest, label),
        data=cells,
        caption=f"{format_count(file['requests'])} requests of one run with {which}",
    )


def _read_cells(data: StudyData, events: Path, file: Row) -> list[dict[str, Any]]:
    """Return where requests were, thinned out to what the eye can tell apart; offsets in bytes, time from the start."""
    byte_offset = '"offset"' if file["has_offset"] else "lba * 512"
    return data.rows(
        f"""
        WITH all_events AS (
            SELECT *, min(ts_ns) OVER () AS first_ns, max(ts_ns) OVER () AS last_ns FROM read_parquet(?)
        ),
        found AS (
            SELECT op, (ts_ns - first_ns) / 1e9 AS second, ({byte_offset})::DOUBLE AS byte_offset, greatest(
                (last_ns - first_ns) / 1e9, 1e-3) AS seconds, max(({byte_offset} + bytes)::DOUBLE) OVER () AS highest
            FROM all_events WHERE coalesce(file, '') = ? AND op IN ('read', 'write') AND {byte_offset} IS NOT NULL
        ),
        cells AS (
            SELECT op, avg(second) AS second, avg(byte_offset) AS byte_offset, any_value(seconds) AS seconds,
                any_value(highest) AS highest, count(*) AS requests
            FROM found
            GROUP BY op, floor({_COLUMNS} * second / seconds), floor({_ROWS} * byte_offset / highest)
        )
        SELECT * FROM cells ORDER BY hash(second, byte_offset) LIMIT {_MOST_POINTS}
        """,  # noqa: S608 - names and numbers of ours
        str(events), file["file"],
    )  # fmt: skip
