"""What an operation waited for in runs of a study, from tables `waits` and `wait_chains`."""

from collections.abc import Sequence

from knobscope.specs.models.thread_classes import SESSION
from knobscope.study_data.study import StudyData
from knobscope.text.budgets import Part, sum_parts

__all__ = ["read_budget"]

_WAITS = """
    SELECT thread_class, w.reason, sum(time_us / operations) AS time_us, sum(through_us / operations) AS through_us
    FROM waits w JOIN runs USING (run_id)
    WHERE thread_class = ? AND operations > 0 AND list_contains(?, run_id) GROUP BY ALL ORDER BY ALL
"""
_CHAINS = """
    SELECT thread_class, via_class, w.reason, sum(time_us / operations) AS time_us
    FROM wait_chains w JOIN runs USING (run_id)
    WHERE thread_class = ? AND operations > 0 AND list_contains(?, run_id) GROUP BY ALL ORDER BY ALL
"""
_WATCHED = """
    SELECT count(DISTINCT run_id) FROM waits w JOIN runs USING (run_id)
    WHERE thread_class = ? AND operations > 0 AND list_contains(?, run_id)
"""


def read_budget(data: StudyData, runs: Sequence[str]) -> list[Part]:
    """Return the mean time of an operation over runs, by reason; empty where no waits of sessions were watched."""
    waits, chains = (data.rows(query, SESSION, list(runs)) for query in (_WAITS, _CHAINS))
    return sum_parts(waits, chains, operations=data.value(_WATCHED, SESSION, list(runs)))
