"""Configurations that gave no result, by reason, with the words of the server itself."""

from dataclasses import dataclass

from knobscope.specs import Case
from knobscope.study_data.study import Row, StudyData, name_case
from knobscope.text.formats import UNKNOWN

#: Lines of a log that are shown, and configurations of a reason.
_LOG_LINES = 30
_EXAMPLES = 8


@dataclass(frozen=True)
class Failure:
    """Runs of one DBMS that failed or were set aside for one reason; configurations as changes to the default."""

    cases: list[str]
    status: str
    is_set_aside: bool
    reason: str
    count: int
    configurations: list[str]
    others: int
    log: str


def list_failures(data: StudyData) -> list[Failure]:
    """Return all runs that failed or were set aside, by DBMS, status and reason; the most frequent first."""
    rows = data.rows(
        """
        SELECT dbms, s.run_id IS NOT NULL AS is_set_aside, CASE WHEN is_set_aside THEN 'excluded' ELSE status END
            AS status, coalesce(s.reason, r.reason) AS reason, count(*) AS n,
            list(DISTINCT config_id ORDER BY config_id) AS ids,
            list(DISTINCT {device: device, workload: workload}) AS pairs,
            first(log_tail ORDER BY started_at) FILTER (trim(log_tail) <> '') AS log_tail
        FROM runs r LEFT JOIN set_aside_runs s USING (run_id)
        WHERE r.status IS DISTINCT FROM 'ok' OR is_set_aside
        GROUP BY ALL
        ORDER BY n DESC, dbms, 3, 4
        """
    )
    return [_failure(data, row) for row in rows]


def _failure(data: StudyData, row: Row) -> Failure:
    ids = row["ids"][:_EXAMPLES]
    return Failure(
        cases=sorted(name_case(Case(row["dbms"], pair["device"], pair["workload"])) for pair in row["pairs"]),
        status=row["status"] or UNKNOWN,
        is_set_aside=row["is_set_aside"],
        reason=row["reason"] or "no reason was recorded",
        count=row["n"],
        configurations=[_describe_configuration(data, row["dbms"], config_id) for config_id in ids],
        others=len(row["ids"]) - len(ids),
        log="\n".join((row["log_tail"] or "").rstrip().splitlines()[-_LOG_LINES:]),
    )


def _describe_configuration(data: StudyData, dbms: str, config_id: str) -> str:
    """Return what a configuration changes in the default one; values as they were passed, to be tried by hand."""
    changed = data.rows(
        """
        SELECT DISTINCT knob, value FROM knob_values
        WHERE config_id = ? AND (knob, value) NOT IN (
            SELECT (knob, value) FROM knob_values JOIN runs USING (config_id) WHERE is_sentinel AND runs.dbms = ?
        )
        ORDER BY knob
        """,
        config_id,
        dbms,
    )
    return ", ".join(f"{row['knob']} = {row['value']}" for row in changed) or "default configuration"
