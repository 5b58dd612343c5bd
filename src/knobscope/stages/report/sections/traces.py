"""Single requests of runs that left a trace: offsets over time by file and thread, depth of queues, locality."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path

from knobscope.figures import (
    OP_LOOKS,
    Figure,
    Point,
    PointGroup,
    PointPanel,
    draw_locality,
    draw_queues,
    draw_scatter,
    slug,
)
from knobscope.specs import Case
from knobscope.stages.report.sections.effects import name_setting
from knobscope.study_data.study import Row, Rows, StudyData
from knobscope.tables import BACKGROUND, open_files
from knobscope.text.formats import format_count, format_number, format_size, plural
from knobscope.watch.locality import describe_heat, describe_locality, trace_locality

_MOST_FILES = 4
#: Points of one picture: cells of this many columns and rows, and no more of them than this.
_COLUMNS, _ROWS, _MOST_POINTS = 160, 70, 3000
#: Hardware queues of one picture, and its intervals.
_MOST_QUEUES, _INTERVALS = 16, 80
#: Ways to load the data in one picture.
_MOST_PANELS = 6
_THREAD_LOOKS = ("line-a", "line-b", "line-c")  # the busiest ones; all others are grey


def trace_figures(data: StudyData, case: Case, traces: Path) -> list[Figure]:
    """Return the pictures of one traced run, the default configuration's if there is one.

    A picture per file of the busiest, by operation; a second one by thread where several threads asked for the file;
    the depth of the hardware queues; and the locality of reads. Before these, where the study loads its data in several
    ways, one picture of all of them. System calls leave no trace, only counts: their side is in `access_contrasts`.
    """
    traced = list_traced(data, case, traces)
    if not traced:
        return []
    run, events = traced[0]
    with open_files([events]) as connection:
        figures = _figures(StudyData(connection, data.specs), case, run, events)
    return [*_loading_figures(data, case, {run["run_id"]: events for run, events in traced}), *figures]


def list_traced(data: StudyData, case: Case, traces: Path) -> list[tuple[Row, Path]]:
    """Return the runs of a case that left a trace, each with its events; those of the default configuration first."""
    runs = data.rows(
        "SELECT run_id, is_sentinel FROM runs WHERE dbms = ? AND device = ? AND workload = ? "
        "ORDER BY is_sentinel DESC, started_at",
        *case,
    )
    recorded = {file.parent.name: file for file in traces.glob("*/events.parquet") if file.is_file()}
    # An id is no path: it is a stranger's text.
    return [(run, recorded[run["run_id"]]) for run in runs if run["run_id"] in recorded]


def _loading_figures(data: StudyData, case: Case, recorded: Mapping[str, Path]) -> Iterator[Figure]:
    """Yield a picture of the file with most bytes in a run of each way to load the data, if there are several."""
    runs = data.rows(
        """
        SELECT dbms, knob, value, baseline, beside, first(run_id ORDER BY started_at) AS run_id
        FROM sweep_runs WHERE status = 'ok' AND list_contains(?, run_id) AND (is_sentinel OR knob IS NOT NULL)
            AND dbms = ? AND device = ? AND workload = ? GROUP BY ALL ORDER BY knob NULLS FIRST, value
        """,
        list(recorded), *case,
    )  # fmt: skip
    dbms = data.specs.dbms.get(case.dbms)
    load_knobs = {None, *(name for name, knob in dbms.knobs.items() if knob.apply == "load")} if dbms else {None}
    loads = [run for run in runs if run["knob"] in load_knobs][:_MOST_PANELS]
    if len(loads) < 2 or loads[0]["knob"] is not None:
        return
    usual = {run["knob"]: name_setting(data, {**run, "value": run["baseline"], "beside": None}) for run in loads[1:]}
    names = [f"{', '.join(usual.values())} (default)", *(name_setting(data, run) for run in loads[1:])]
    panels = [_read_busiest(data, recorded[run["run_id"]]) for run in loads]
    points = [{"setting": name, **cell} for name, cells in zip(names, panels, strict=True) for cell in cells]
    seconds, highest = (max((point[key] for point in points), default=1.0) for key in ("seconds", "highest"))
    drawn = [PointPanel(name, _point_groups(cells, "op"), highest) for name, cells in zip(names, panels, strict=True)]
    yield Figure(
        name=slug("loads", *case),
        title="Offsets over time by how the data was loaded",
        description=f"Requests over the seconds of a run, by offset in the file with most bytes, a panel for each way "
        f"to load the data: {'; '.join(names)}.",
        draw=lambda width: draw_scatter(width, drawn, seconds),
        data=points,
        caption="offset in the file with most bytes read and written, one run each, on the same axes",
        wide=True,
    )


def _read_busiest(data: StudyData, events: Path) -> list[Row]:
    """Return where the requests of a run were in the file of which they read and wrote most."""
    with open_files([events]) as connection:
        trace = StudyData(connection, data.specs)
        files = _busiest_files(trace, events)
        return list(read_cells(trace, events, max(files, key=lambda file: file["bytes"]), "op")) if files else []


def _figures(data: StudyData, case: Case, run: Row, events: Path) -> list[Figure]:
    """Return the pictures of a run; `data` reads its trace and nothing else."""
    files = _busiest_files(data, events)
    # Traces of other recorders know neither threads nor queues.
    columns = {row["column_name"] for row in data.rows("DESCRIBE FROM read_parquet(?)", str(events))}
    figures = [_scatter(data, case, run, events, file, "op") for file in files]
    if "comm" in columns:
        by_thread = [_scatter(data, case, run, events, file, "thread") for file in files]
        figures += [figure for figure in by_thread if len({row["thread"] for row in figure.data}) > 1]
    if "queue" in columns:
        figures += list(_queue_figures(data, case, run, events))
    return figures + _locality_figures(data, case, run, events)


def _busiest_files(data: StudyData, events: Path) -> Rows:
    return data.rows(
        """
        SELECT coalesce(file, '') AS file, count(*) AS requests, sum(bytes) AS bytes,
            count("offset") = count(*) AS has_offset
        FROM read_parquet(?) WHERE op IN ('read', 'write') GROUP BY ALL ORDER BY requests DESC, file LIMIT ?
        """,
        str(events), _MOST_FILES,
    )  # fmt: skip


def describe_run(run: Row) -> str:
    """Say which configuration a run had."""
    return f"one run with {'the default' if run['is_sentinel'] else 'a changed'} configuration"


def _scatter(data: StudyData, case: Case, run: Row, events: Path, file: Row, group: str) -> Figure:
    cells = read_cells(data, events, file, group)
    seconds = max((cell["seconds"] for cell in cells), default=1.0)
    highest = max((cell["highest"] for cell in cells), default=1.0)
    label = "offset in the file" if file["has_offset"] else "address on the device, above the lowest"
    name = file["file"] or "requests without a known file"
    groups = _point_groups(cells, group)
    suffix = {"op": "", "thread": ", by thread"}[group]
    return Figure(
        name=slug("trace", *case, name, suffix),
        title=name + suffix,
        description=f"{plural(file['requests'], 'request')} of {name} over the seconds of a run, by {label}{suffix}: "
        f"{', '.join(point_group.name for point_group in groups)}.",
        draw=lambda width: draw_scatter(width, [PointPanel(label, groups, highest)], seconds),
        data=cells,
        caption=f"{format_count(file['requests'])} requests of {describe_run(run)}",
    )


def _point_groups(cells: Sequence[Row], group: str) -> list[PointGroup]:
    """Return the points by operation, or by thread, the busiest three threads apart."""
    points: dict[str, list[Point]] = {}
    requests: dict[str, int] = {}
    for cell in cells:
        points.setdefault(cell[group], []).append((cell["second"], cell["byte_offset"]))
        requests[cell[group]] = requests.get(cell[group], 0) + cell["requests"]
    if group == "op":
        return [PointGroup(f"{op}s", look, points[op]) for op, look in OP_LOOKS.items() if op in points]
    busiest = sorted(points, key=lambda name: (-requests[name], name))
    named, unnamed = busiest[: len(_THREAD_LOOKS)], busiest[len(_THREAD_LOOKS) :]
    groups = [PointGroup(name, look, points[name]) for name, look in zip(named, _THREAD_LOOKS, strict=False)]
    unnamed_points = [point for name in unnamed for point in points[name]]
    return (
        [*groups, PointGroup(plural(len(unnamed), "other"), "base-bar", unnamed_points)] if unnamed_points else groups
    )


def read_cells(data: StudyData, events: Path, file: Row, group: str) -> Rows:
    """Return where requests were, thinned out to what the eye can tell apart; offsets in bytes, time from the start.

    `group` is what tells points apart: `op`, `operation`, or `thread`, names that differ in digits only being one.
    """
    # Of addresses only the part that was used is shown: the file system begins anywhere on the disk.
    byte_offset = '"offset"' if file["has_offset"] else "(lba - min(lba) OVER ()) * 512"
    grouped = {
        "op": "op",
        "operation": f"coalesce(operation, '{BACKGROUND}')",
        "thread": r"regexp_replace(coalesce(comm, 'nobody'), '\d+', 'N', 'g')",
    }[group]
    return data.rows(
        f"""
        WITH all_events AS (
            SELECT *, min(ts_ns) OVER () AS first_ns, max(ts_ns) OVER () AS last_ns FROM read_parquet(?)
        ),
        offsets AS (
            SELECT {grouped} AS {group}, bytes, (ts_ns - first_ns) / 1e9 AS second,
                ({byte_offset})::DOUBLE AS byte_offset, greatest((last_ns - first_ns) / 1e9, 1e-3) AS seconds
            FROM all_events WHERE coalesce(file, '') = ? AND op IN ('read', 'write')
        ),
        found AS (
            SELECT *, max(byte_offset + bytes) OVER () AS highest FROM offsets WHERE byte_offset IS NOT NULL
        ),
        cells AS (
            SELECT {group}, avg(second) AS second, avg(byte_offset) AS byte_offset, any_value(seconds) AS seconds,
                any_value(highest) AS highest, count(*) AS requests
            FROM found
            GROUP BY {group}, floor({_COLUMNS} * second / seconds), floor({_ROWS} * byte_offset / highest)
        )
        SELECT * FROM cells ORDER BY hash(second, byte_offset) LIMIT {_MOST_POINTS}
        """,  # noqa: S608 - names and numbers of ours
        str(events), file["file"],
    )  # fmt: skip


def _locality_figures(data: StudyData, case: Case, run: Row, events: Path) -> list[Figure]:
    """Return what a larger cache would save of the reads, by its size and over the run; nothing without reads."""
    requests = "SELECT *, op = 'read' AS is_read FROM read_parquet(?) WHERE op IN ('read', 'write')"
    traced = trace_locality(data.connection, requests, str(events))
    if traced is None:
        return []
    locality = traced.locality
    curve = [(float(point.cache_bytes), point.miss_share) for point in locality.curve]
    windows = [
        [(window.end_s, share) for window, share in zip(locality.windows, shares, strict=True) if share is not None]
        for shares in (
            [window.first_share for window in locality.windows],
            [window.miss_share for window in locality.windows],
        )
    ]
    used = format_size(locality.working_set_bytes)
    sentence = f"{describe_locality(locality)} {describe_heat(traced)}".strip()
    return [
        Figure(
            name=slug("locality", *case),
            title="What a larger cache would save",
            description=f"Bytes read from the device by size of an additional cache, and over the seconds of a run; "
            f"{used} were used. {sentence}",
            draw=lambda width: draw_locality(width, curve, locality.first_share, locality.useful_cache_bytes, windows),
            data=[*map(asdict, locality.curve), *map(asdict, locality.windows)],
            caption=f"{sentence} Measured in {describe_run(run)}.",
        )
    ]


def _queue_figures(data: StudyData, case: Case, run: Row, events: Path) -> Iterator[Figure]:
    cells = _read_queues(data, events)
    if not cells:
        return
    seconds = cells[0]["seconds"]
    totals: dict[int, float] = {}
    for cell in cells:
        totals[cell["queue"]] = totals.get(cell["queue"], 0.0) + cell["depth"]
    busiest = sorted(sorted(totals, key=lambda queue: -totals[queue])[:_MOST_QUEUES])
    at = {(cell["queue"], cell["interval"]): cell["depth"] for cell in cells}
    rows = [(f"queue {queue}", [at.get((queue, index)) for index in range(_INTERVALS)]) for queue in busiest]
    means = "; ".join(f"queue {queue}: {format_number(totals[queue] / _INTERVALS)} on average" for queue in busiest)
    left_out = f"; the {_MOST_QUEUES} busiest of {len(totals)}" if len(totals) > _MOST_QUEUES else ""
    yield Figure(
        name=slug("queues", *case),
        title="Depth of each hardware queue",
        description=f"Requests in flight by hardware queue over the seconds of a run. {means}.",
        draw=lambda width: draw_queues(width, rows, seconds),
        data=cells,
        caption=f"{describe_run(run)}{left_out}",
    )


def _read_queues(data: StudyData, events: Path) -> Rows:
    """Return the mean depth by hardware queue and interval of the run: time in flight over the interval's length."""
    return data.rows(
        f"""
        WITH flights AS (
            SELECT queue, ts_ns - min(ts_ns) OVER () AS start_ns, ts_ns + lat_ns - min(ts_ns) OVER () AS end_ns
            FROM read_parquet(?) WHERE lat_ns IS NOT NULL AND queue IS NOT NULL
        ), length AS (
            SELECT greatest(max(start_ns), 1_000_000) / {_INTERVALS} AS interval_ns FROM flights
        ), parts AS (
            SELECT queue, interval_ns, start_ns, end_ns, unnest(range(
                floor(start_ns / interval_ns)::BIGINT, least(floor(end_ns / interval_ns)::BIGINT + 1, {_INTERVALS})
            )) AS interval
            FROM flights, length
        )
        SELECT queue, interval, any_value(interval_ns) * {_INTERVALS} / 1e9 AS seconds, count(*) AS requests,
            sum(least(end_ns, (interval + 1) * interval_ns) - greatest(start_ns, interval * interval_ns))
                / any_value(interval_ns) AS depth
        FROM parts GROUP BY queue, interval HAVING depth > 0 ORDER BY queue, interval
        """,  # noqa: S608 - numbers of ours
        str(events),
    )
