"""What a killed server lost and how long it took to come back, by configuration of the sweep."""

from collections.abc import Iterator

from markupsafe import Markup

from knobscope.specs import Case
from knobscope.stages.report.sections.effects import name_setting
from knobscope.stages.report.sections.html_table import CODE, NUMBER, TEXT, Cells, strengthen, tables_by_case
from knobscope.study_data.study import Row, StudyData
from knobscope.text.formats import format_micros, format_seconds, plural

_RECOVERIES = """
    SELECT s.dbms, s.knob, s.value, s.beside, s.is_sentinel AS is_default, count(DISTINCT s.run_id) AS runs,
        median(s.recovery_s) AS recovery_s, min(s.recovery_s) AS shortest_s, max(s.recovery_s) AS longest_s,
        median(p.seconds) AS start_s, count(s.lost_s) AS witnessed,
        count(*) FILTER (s.lost_writes > 0) AS losing, max(s.lost_s) AS lost_s, max(s.lost_writes) AS lost_writes
    FROM sweep_runs s LEFT JOIN phases p ON p.run_id = s.run_id AND p.phase = 'start'
    WHERE s.recovery_s IS NOT NULL AND s.status = 'ok' AND (s.dbms, s.device, s.workload) = (?, ?, ?)
        AND (s.is_sentinel OR s.knob IS NOT NULL)
    GROUP BY s.dbms, s.knob, s.value, s.beside, s.is_sentinel
    ORDER BY is_default DESC, s.knob, s.beside NULLS FIRST, try_cast(s.value AS DOUBLE), s.value
"""
_COLUMNS = (
    ("Configuration", CODE),
    ("Runs", NUMBER),
    ("Until it answered again", NUMBER),
    ("Start on undamaged data", NUMBER),
    ("Acknowledged writes lost", TEXT),
)


def build_recoveries(data: StudyData) -> list[tuple[str, Markup]]:
    """Return the cases of which recovery was measured, each with a table of its configurations, the default first."""
    return tables_by_case(data, _COLUMNS, _list_rows)


def _list_rows(data: StudyData, case: Case) -> Iterator[Cells]:
    for row in data.rows(_RECOVERIES, *case):
        ends = f"{format_seconds(row['shortest_s'])} to {format_seconds(row['longest_s'])}"
        yield (
            "default" if row["is_default"] else name_setting(data, row),
            row["runs"],
            f"{format_seconds(row['recovery_s'])} ({ends})",
            format_seconds(row["start_s"]),
            strengthen(_tell_loss(row), bool(row["losing"])),
        )


def _tell_loss(row: Row) -> str:
    if not row["witnessed"]:
        return "not measured"
    if not row["losing"]:
        return "none"
    return (
        f"up to {plural(row['lost_writes'], 'row')}, the last {format_micros(row['lost_s'] * 1e6)}, "
        f"in {row['losing']} of {plural(row['witnessed'], 'run')}"
    )
