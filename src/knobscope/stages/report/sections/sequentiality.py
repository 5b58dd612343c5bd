"""What order costs: sequential share and CPU time of every swept value, and what order gains on the device."""

from knobscope.figures import Figure, OrderPoint, draw_order, slug
from knobscope.specs import Case
from knobscope.stages.report.sections.effects import name_setting, read_effect
from knobscope.study_data.study import Row, Rows, StudyData, name_case
from knobscope.text.formats import format_micros, format_number, format_share


def order_figures(data: StudyData) -> list[Figure]:
    """Return a figure for each case whose sweep knows sequential shares and CPU time."""
    return [figure for case in data.shown_cases if (figure := _order_figure(data, case)) is not None]


def _read_settings(data: StudyData, case: Case, op: str) -> Rows:
    """Return a row per swept value: sequential share of reads or writes, CPU time in µs, effect on throughput."""
    return data.rows(
        """
        SELECT o.dbms, o.knob, o.value, o.baseline, o.beside, o.reference AS default_share,
            o.reference + o.estimate AS share, 1e6 * c.reference AS default_cpu_us,
            1e6 * c.reference * exp(c.estimate) AS cpu_us,
            t.device, t.workload, t.metric, t.estimate, t.low, t.high, t.q_value
        FROM effects o
        JOIN effects c ON c.metric = 'cpu_s_per_op' AND (c.dbms, c.device, c.workload, c.knob, c.value)
            = (o.dbms, o.device, o.workload, o.knob, o.value) AND c.beside IS NOT DISTINCT FROM o.beside
        JOIN effects t ON t.metric = 'throughput_ops' AND (t.dbms, t.device, t.workload, t.knob, t.value)
            = (o.dbms, o.device, o.workload, o.knob, o.value) AND t.beside IS NOT DISTINCT FROM o.beside
        WHERE o.metric = ?
            AND o.estimate IS NOT NULL AND c.estimate IS NOT NULL AND t.estimate IS NOT NULL
            AND o.dbms = ? AND o.device = ? AND o.workload = ?
        ORDER BY abs(c.estimate) + 2 * abs(o.estimate) DESC, o.knob, o.value
        """,
        f"{op}_sequential_share", *case,
    )  # fmt: skip


def _by_bytes(data: StudyData, case: Case) -> list[str]:
    """Return what the sweep did on the device, reads and writes, whichever moved more bytes first."""
    rows = data.rows(
        """
        SELECT op FROM io_profile JOIN sweep_runs USING (run_id)
        WHERE op IN ('read', 'write') AND requests > 0 AND dbms = ? AND device = ? AND workload = ?
        GROUP BY op ORDER BY sum(bytes) DESC, op DESC
        """,
        *case,
    )
    return [row["op"] for row in rows]


def _order_figure(data: StudyData, case: Case) -> Figure | None:
    candidates = ((op, _read_settings(data, case, op)) for op in _by_bytes(data, case))
    op, rows = next(((op, rows) for op, rows in candidates if len(rows) > 1), ("", []))
    if not rows:
        return None
    usual = [row for row in rows if row["beside"] is None][:1]  # others are compared with another configuration
    points = [OrderPoint("default configuration", row["default_share"], row["default_cpu_us"], "ink") for row in usual]
    points += [_point(data, row) for row in rows]
    gain = _tell_gap(data, case, op)
    summary = "; ".join(
        f"{point.name}: {format_share(point.share)} in order, {format_micros(point.cpu_us)}" for point in points[:6]
    )
    return Figure(
        name=slug("order against cpu", *case),
        title=f"{name_case(case)}: the CPU cost of sequential I/O",
        description=f"Sequential share of {op}s and CPU time of an operation, by setting. {summary}.{gain}",
        draw=lambda width: draw_order(width, points, f"sequential share of {op}s"),
        data=rows,
        caption=f"Sequential {op}s and CPU time; blue: faster than the default, red: slower, hollow: unclear.{gain}",
    )


def _tell_gap(data: StudyData, case: Case, op: str) -> str:
    """Say how fast the device is at random, and where that was hard to measure."""
    rows = data.rows(
        "SELECT value, confidence FROM device_property WHERE device = ? AND property = ? AND value > 0",
        case.device,
        f"random_to_sequential_{op}s_depth_1",
    )
    if not rows:
        return ""
    doubt = ", measured with low confidence" if rows[0]["confidence"] == "low" else ""
    return f" On this device random {op}s are {format_number(rows[0]['value'])}x as fast as sequential ones{doubt}."


def _point(data: StudyData, row: Row) -> OrderPoint:
    effect = read_effect(data, row)
    return OrderPoint(name_setting(data, row), min(max(row["share"], 0.0), 1.0), row["cpu_us"], effect.look())
