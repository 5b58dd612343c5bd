"""What an operation waited for in runs of a study, from tables `waits` and `wait_chains`."""

from collections.abc import Sequence

from knobscope.study_data.study import StudyData
from knobscope.text.budgets import Part, sum_parts
from knobscope.thread_classes import SESSION

_WAITS = """
    WITH counted AS (
        SELECT run_id, waited_operations(throughput_ops, waits_s, operations) AS operations
        FROM runs WHERE list_contains(?, run_id)
    )
    SELECT thread_class, reason, sum(time_us / operations) AS time_us, sum(through_us / operations) AS through_us,
        (SELECT count(DISTINCT run_id) FROM waits w JOIN counted USING (run_id) WHERE w.thread_class = ?) AS runs
    FROM waits JOIN counted USING (run_id) WHERE thread_class = ? AND operations > 0 GROUP BY ALL ORDER BY ALL
"""
_CHAINS = """
    WITH counted AS (
        SELECT run_id, waited_operations(throughput_ops, waits_s, operations) AS operations
        FROM runs WHERE list_contains(?, run_id)
    )
    SELECT thread_class, via_class, reason, sum(time_us / operations) AS time_us
    FROM wait_chains JOIN counted USING (run_id) WHERE thread_class = ? AND operations > 0 GROUP BY ALL ORDER BY ALL
"""


def read_budget(data: StudyData, runs: Sequence[str]) -> list[Part]:
    """Return the mean time of an operation over runs, by reason; empty where no waits of sessions were watched."""
    waits = data.rows(_WAITS, list(runs), SESSION, SESSION)
    chains = data.rows(_CHAINS, list(runs), SESSION)
    return sum_parts(waits, chains, operations=waits[0]["runs"] if waits else 1)


def read_latency(data: StudyData, runs: Sequence[str]) -> float | None:
    """Return the mean latency of an operation, in microseconds, in those of the runs that have a budget."""
    query = "SELECT avg(latency_mean_us) FROM runs SEMI JOIN waits USING (run_id) WHERE list_contains(?, run_id)"
    latency_us: float | None = data.value(query, list(runs))
    return latency_us
