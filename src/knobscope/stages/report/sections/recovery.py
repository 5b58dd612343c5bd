"""What a killed server lost and how long it took to come back, by configuration of the sweep."""

from dataclasses import dataclass

from knobscope.specs import Case
from knobscope.stages.report.sections.effects import name_beside
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import format_micros, format_seconds, format_value, plural

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


@dataclass(frozen=True)
class Recovery:
    """A configuration, in words; `loses`: whether any of its runs lost acknowledged writes."""

    setting: str
    runs: int
    recovery: str
    start: str
    lost: str
    loses: bool


@dataclass(frozen=True)
class CaseRecoveries:
    """All configurations of one case, the default first."""

    name: str
    rows: list[Recovery]


def build_recoveries(data: StudyData) -> list[CaseRecoveries]:
    """Return the cases of which recovery was measured."""
    cases = [
        CaseRecoveries(
            name_case(case),
            [_tell(data, case, row) for row in data.rows(_RECOVERIES, *case)],
        )
        for case in data.shown_cases
    ]
    return [case for case in cases if case.rows]


def _tell(data: StudyData, case: Case, row: Row) -> Recovery:
    value = format_value(data.specs.dbms.get(case.dbms), row["knob"], row["value"])
    ends = f"{format_seconds(row['shortest_s'])} to {format_seconds(row['longest_s'])}"
    return Recovery(
        setting="default" if row["is_default"] else f"{row['knob']} = {value}{name_beside(data, row)}",
        runs=row["runs"],
        recovery=f"{format_seconds(row['recovery_s'])} ({ends})",
        start=format_seconds(row["start_s"]),
        lost=_tell_loss(row),
        loses=bool(row["losing"]),
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
