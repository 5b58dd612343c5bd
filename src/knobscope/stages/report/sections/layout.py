"""Part "What each device of a layout was asked for": where the requests went, by layout."""

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.stages.report.sections.html_table import CODE_HEAD, NUMBER, TEXT, render_table
from knobscope.study_data.study import StudyData
from knobscope.text.formats import UNKNOWN, format_number, format_rate, format_share, format_size

_NUMBERS = ("Read", "Written", "Flushes", "Mean depth", "Busy")
_COLUMNS = (("Layout", CODE_HEAD), ("Device", TEXT), *((head, NUMBER) for head in _NUMBERS))


def tabulate_layout(data: StudyData, case: Case) -> Markup:
    """Return what each device was asked for in the sweep of a case, from table `layout_io`: means over its runs.

    Layouts are told by the knobs `device.PART` that differ from the default configuration, in runs that change nothing
    else; the default configuration itself is the first.
    """
    rows = data.rows(
        """
        WITH swept AS (
            SELECT run_id, config_id, is_sentinel, window_s FROM runs
            WHERE phase = 'sweep' AND status = 'ok' AND dbms = ? AND device = ? AND workload = ?
        ),
        usual AS (
            SELECT DISTINCT knob, value FROM knob_values v
            WHERE v.dbms = ? AND config_id IN (SELECT config_id FROM swept WHERE is_sentinel)
        ),
        changed AS (
            SELECT config_id, string_agg(v.knob || '=' || v.value, ', ' ORDER BY v.knob) AS layout,
                bool_and(v.knob LIKE 'device.%') AS is_layout
            FROM knob_values v JOIN usual u USING (knob)
            WHERE v.dbms = ? AND v.value <> u.value GROUP BY config_id
        ),
        by_run AS (
            SELECT coalesce(c.layout, '') AS layout, l.device, run_id, any_value(window_s) AS window_s,
                sum(bytes) FILTER (op = 'read') AS bytes_read, sum(bytes) FILTER (op = 'write') AS bytes_written,
                sum(requests) FILTER (op = 'flush') AS flushes,
                any_value(mean_depth) AS mean_depth, any_value(busy_share) AS busy_share
            FROM layout_io l JOIN swept USING (run_id) LEFT JOIN changed c USING (config_id)
            WHERE is_sentinel OR c.is_layout
            GROUP BY ALL
        )
        SELECT layout, device, avg(bytes_read / window_s) AS read, avg(bytes_written / window_s) AS written,
            avg(flushes / window_s) AS flushes, avg(mean_depth) AS depth, avg(busy_share) AS busy
        FROM by_run GROUP BY layout, device ORDER BY layout, device
        """,
        *case,
        case.dbms,
        case.dbms,
    )
    cells = [
        (
            row["layout"] or "default",
            row["device"],
            _per_second(row["read"]),
            _per_second(row["written"]),
            format_rate(row["flushes"], "/s"),
            format_number(row["depth"]),
            format_share(row["busy"]),
        )
        for row in rows
    ]
    return render_table(_COLUMNS, cells, caption="Requests to each device of the layout")


def _per_second(size: float | None) -> str:
    return UNKNOWN if size is None else f"{format_size(size)}/s"
