"""Finds the cases in which threads that clients wake pass operations on to others: their time is no budget."""

from typing import TYPE_CHECKING

from knobscope.specs import StudySpecs
from knobscope.thread_classes import LISTENER, SESSION

if TYPE_CHECKING:
    import duckdb

#: Each of fewer threads than clients serves several of these: an operation then takes what its thread does for all of
#: them, and the way there. Where that is less than half of what clients wait, most of it happens elsewhere: slapd's
#: listener took 0.1 ms for operations of 10 ms. Half is our choice; without a budget, counts decide.
_FIND = f"""
    WITH served AS (
        SELECT run_id, max(threads) AS sessions, sum(time_us) FILTER (reason <> 'network') AS own_us
        FROM waits WHERE thread_class = '{SESSION}' GROUP BY run_id
    ), judged AS (
        SELECT dbms, device, workload, any_value(c.threads) AS clients, median(sessions) AS sessions,
            median(own_us / waited_operations(throughput_ops, waits_s, operations)) AS own_us,
            median(latency_mean_us) AS latency_us
        FROM cases c JOIN runs USING (dbms, device, workload) JOIN served USING (run_id)
        WHERE is_sentinel AND status = 'ok' AND list_contains(?, dbms)
        GROUP BY ALL
    )
    SELECT list(run_id) FROM judged JOIN runs USING (dbms, device, workload)
    WHERE sessions < clients AND own_us * clients / sessions < latency_us / 2
"""  # noqa: S608 - a name of ours


def rename_listeners(connection: "duckdb.DuckDBPyConnection", specs: StudySpecs) -> None:
    """Rename sessions that pass operations on, of the DBMSs whose spec does not name sessions itself."""
    unnamed = [name for name, dbms in specs.dbms.items() if SESSION not in dbms.threads]
    row = connection.execute(_FIND, [unnamed]).fetchone()
    for table, column in (("waits", "thread_class"), ("wait_chains", "thread_class"), ("wait_chains", "via_class")):
        connection.execute(
            f"UPDATE {table} SET {column} = ? WHERE {column} = ? AND list_contains(?, run_id)",  # noqa: S608 - our names
            [LISTENER, SESSION, (row and row[0]) or []],
        )
