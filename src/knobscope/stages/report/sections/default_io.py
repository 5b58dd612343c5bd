"""What the device sees of the default configuration: sizes, depth over time, latency."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from knobscope.figures import (
    OP_LOOKS,
    Curve,
    Figure,
    bucket_points,
    draw_latencies,
    draw_series,
    measure_intervals,
    slug,
    with_pauses,
)
from knobscope.specs import Case
from knobscope.stages.report.sections.evidence import Comparison, default_only, picture_depth, picture_sizes
from knobscope.stages.report.sections.html_table import HEAD, NUMBER, Cells, render_table
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import format_number, format_rate, format_seconds, format_share, format_size, share_of

_NUMBERS = ("Per operation", "Mean size", "Aligned", "Sequential", "Own", "Written back", "Journal", "Flush", "Foreign")
_COLUMNS = (("Request", HEAD), *((head, NUMBER) for head in _NUMBERS))


@dataclass(frozen=True)
class DefaultIo:
    """The block-level facts of the default configuration; `empty` says why there are none.

    `requests` has a row for each kind: numbers per operation of the workload, and whose they are.
    """

    requests: Markup
    pictures: list[Figure]
    empty: str = ""


def build_default_io(data: StudyData, case: Case) -> DefaultIo:
    """Return what the successful sentinels of a case asked of the device."""
    compared = default_only(data, case, slug("default", *case))
    sentinels = compared.settings[0]
    if not sentinels.watched:
        return DefaultIo(Markup(), [], _why_unwatched(data, sentinels.runs))
    pictures = [
        picture_sizes(data, compared, "write"),
        picture_sizes(data, compared, "read"),
        picture_depth(data, compared),
        _series_figure(data, compared),
        _progress_figure(data, compared),
        _latency_figure(data, compared),
    ]
    requests = _tabulate_requests(data, compared)
    empty = "" if requests else "The default configuration did no I/O on the device while it was measured."
    return DefaultIo(requests, [picture for picture in pictures if picture is not None], empty)


def _why_unwatched(data: StudyData, runs: Sequence[Row]) -> str:
    if not runs:
        return "No block-level facts: no run of the default configuration succeeded."
    if data.specs.study.monitor == "procfs":
        return "No block-level facts: the study uses the procfs monitor (`monitor: procfs`), which reports only totals."
    if data.is_imported:
        return "No block-level facts: the imported tables have no counts of requests."
    if any(run["monitor"] == "bpf" for run in runs):
        return "No block-level facts: the monitor lost events in every run of the default configuration."
    reasons = sorted({run["monitor_reason"] for run in runs if run.get("monitor_reason")})
    return (
        "No block-level facts: the monitor fell back to procfs, which reports only totals, because BPF could not be "
        "used: "
        f"{'; '.join(reasons) or 'the reason was not recorded'}. Rules that need the block layer answer `insufficient`."
    )


def _tabulate_requests(data: StudyData, compared: Comparison) -> Markup:
    setting = compared.settings[0]
    operations = sum(run["operations"] or 0 for run in setting.runs if run["watched"])
    rows = data.rows(
        """
        SELECT op, sum(requests)::DOUBLE AS requests, sum(bytes)::DOUBLE AS bytes,
            sum(aligned_requests) AS aligned, sum(sequential_requests) AS sequential,
            sum(own_requests) AS own, sum(inode_requests) AS inode, sum(journal_requests) AS journal,
            sum(flush_requests) AS flush, sum(foreign_requests) AS foreign_
        FROM io_profile WHERE requests > 0 AND list_contains(?, run_id)
        GROUP BY op ORDER BY list_position(['read', 'write', 'flush', 'discard'], op)
        """,
        setting.watched,
    )
    return render_table(_COLUMNS, [_io_line(row, operations) for row in rows])


def _io_line(row: Row, operations: int) -> Cells:
    has_size = row["op"] in ("read", "write")
    # A monitor that follows processes counts foreign requests in addition to the others, not among them.
    parts = [row[name] or 0 for name in ("own", "inode", "journal", "flush", "foreign_")]
    return (
        row["op"],
        format_number(row["requests"] / operations if operations else None),
        format_size(None if row["bytes"] is None else row["bytes"] / row["requests"]) if has_size else "",
        format_share(share_of(row["aligned"], row["requests"])) if row["op"] == "write" else "",
        format_share(share_of(row["sequential"], row["requests"])) if has_size else "",
        *(format_share(share_of(part, sum(parts))) for part in parts),
    )


def _series_figure(data: StudyData, compared: Comparison) -> Figure | None:
    """Show the run in the middle of all sentinels by throughput, second by second."""
    watched = [run for run in compared.settings[0].runs if run["watched"]]
    typical = sorted(watched, key=lambda run: run["throughput_ops"] or 0)[len(watched) // 2]
    rows = data.rows("SELECT * FROM io_series WHERE run_id = ? ORDER BY op, t_s", typical["run_id"])
    times: list[float] = sorted({row["t_s"] for row in rows})
    if len(times) < 2:
        return None
    step, length = measure_intervals(times)
    end = max(times[-1], typical["window_s"] or 0)

    def curves(take: Callable[[Row], float]) -> list[Curve]:
        by_op = {op: [(row["t_s"], take(row)) for row in rows if row["op"] == op] for op in ("read", "write")}
        return [Curve(op, OP_LOOKS[op], with_pauses(points, step, end)) for op, points in by_op.items() if points]

    depths = sorted({(row["t_s"], row["depth"] or 0.0) for row in rows})
    latencies = {
        op: [
            (row["t_s"], row["latency_mean_us"] / 1000)  # where nothing ended there is none
            for row in rows
            if row["op"] == op and row["latency_mean_us"] is not None
        ]
        for op in ("read", "write")
    }
    panels = [
        ("MB/s at the device", curves(lambda row: (row["bytes"] or 0) / length[row["t_s"]] / 1e6)),
        ("requests in flight", [Curve("depth", "line-d", with_pauses(depths, step, end))]),
        ("latency, ms", [Curve(op, OP_LOOKS[op], points) for op, points in latencies.items() if points]),
    ]
    return Figure(
        name=slug(compared.name, "series"),
        title="One run over time",
        description=f"Traffic, depth and latency over one run with {format_rate(typical['throughput_ops'])}.",
        draw=lambda width: draw_series(width, [panel for panel in panels if panel[1]]),
        data=rows,
        caption=f"The run whose throughput is in the middle: {format_rate(typical['throughput_ops'])}.",
    )


def _progress_figure(data: StudyData, compared: Comparison) -> Figure | None:
    """Show the operations done so far, in the middle run and in the one that paused longest: a stall is a flat part."""
    runs = sorted((run for run in compared.settings[0].runs), key=lambda run: run["throughput_ops"] or 0)
    middle, paused = runs[len(runs) // 2], max(runs, key=lambda run: run["window_pause_s"] or 0)
    shown = {middle["run_id"]: ("middle", "plain"), paused["run_id"]: ("stalled", "bad")}
    pause = paused["window_pause_s"] or 0
    if not pause:
        shown = {middle["run_id"]: ("middle", "plain")}
    rows = data.rows(
        "SELECT run_id, t_s, sum(ops) OVER (PARTITION BY run_id ORDER BY t_s)::BIGINT AS operations "
        "FROM intervals WHERE list_contains(?, run_id) ORDER BY run_id, t_s",
        list(shown),
    )
    curves = [
        Curve(name, look, [(0.0, 0.0), *((row["t_s"], row["operations"]) for row in rows if row["run_id"] == run_id)])
        for run_id, (name, look) in shown.items()
    ]
    if len(rows) < 2:
        return None
    caption = f"The default run whose throughput is in the middle: {format_rate(middle['throughput_ops'])}"
    caption += f"; and the one that paused longest, for {format_seconds(pause)}." if pause else "; none paused."
    return Figure(
        name=slug(compared.name, "progress"),
        title="Operations so far",
        description=f"Operations done by each second of a run. {caption}",
        draw=lambda width: draw_series(width, [("operations", curves)]),
        data=rows,
        caption=caption,
    )


def _latency_figure(data: StudyData, compared: Comparison) -> Figure | None:
    rows = data.rows(
        """
        SELECT op, low_us, high_us, sum(requests)::BIGINT AS requests FROM io_latency
        WHERE requests > 0 AND list_contains(?, run_id) GROUP BY ALL ORDER BY op, high_us
        """,
        compared.settings[0].watched,
    )
    curves = []
    for op, look in OP_LOOKS.items():
        op_rows = [row for row in rows if row["op"] == op]
        total = sum(row["requests"] for row in op_rows)
        if total:
            buckets = ((row["low_us"], row["high_us"], row["requests"] / total) for row in op_rows)
            curves.append(Curve(op, look, bucket_points(buckets)))
    if not curves:
        return None
    return Figure(
        name=slug(compared.name, "latency"),
        title="Latency at the device",
        description=f"Histogram of request latency, {name_case(compared.case)}: {', '.join(c.name for c in curves)}.",
        draw=lambda width: draw_latencies(width, curves, "from issue to completion"),
        data=rows,
    )
