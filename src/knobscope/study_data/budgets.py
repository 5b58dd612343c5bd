"""What an operation waited for in runs of a study, from tables `waits` and `wait_chains`."""

from collections.abc import Sequence

from knobscope.specs.models.thread_classes import SESSION
from knobscope.study_data.study import StudyData
from knobscope.text.budgets import Part, sum_parts

__all__ = ["read_budget"]

# A run without a reason counts for the mean, too, and one without any row was not watched.
_MEANS = """
    WITH watched AS (
        SELECT DISTINCT run_id, operations FROM runs JOIN waits USING (run_id)
        WHERE list_contains(?, run_id) AND operations > 0 AND thread_class = ?
    )
    SELECT * EXCLUDE (run_id, operations, time_us, through_us),
        sum(time_us / operations) / (SELECT count(*) FROM watched) AS time_us,
        sum(through_us / operations) / (SELECT count(*) FROM watched) AS through_us
"""
_WAITS = f"{_MEANS} FROM (SELECT run_id, thread_class, reason, time_us, through_us FROM waits)"
_CHAINS = f"{_MEANS} FROM (SELECT run_id, thread_class, via_class, reason, time_us, 0 AS through_us FROM wait_chains)"
_OF_CLASS = " JOIN watched USING (run_id) WHERE thread_class = ? GROUP BY ALL ORDER BY ALL"


def read_budget(data: StudyData, runs: Sequence[str]) -> list[Part]:
    """Return the mean time of an operation over runs, by reason; empty where no waits of sessions were watched."""
    waits, chains = (data.rows(query + _OF_CLASS, list(runs), SESSION, SESSION) for query in (_WAITS, _CHAINS))
    return sum_parts(waits, chains)
