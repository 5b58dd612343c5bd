"""How much slower reads are while the device also writes, as the runs of the default configuration show it.

Each run is its own control: its tenths of a second with reads are parted into those in which (nearly) nothing was
written and those in which no less was written than usual. What both have in common, and what a checkpoint does beside
writing, is not told apart: it is evidence, no experiment, and the gain that it promises is an upper bound.
"""

from typing import TYPE_CHECKING

import numpy as np

from knobscope.statistics.paired import mean_over_runs
from knobscope.statistics.regression import adjust_for_fdr

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["measure_interference"]

_CASE = ["dbms", "device", "workload"]
#: Fewer intervals of a kind are a moment, not a state.
_LEAST_INTERVALS = 5
#: A closed loop cannot lose more of an operation's time than this to waiting for the device.
_MOST_SAVED = 0.9

_BY_RUN = f"""
    WITH defaults AS (
        SELECT run_id FROM runs_behind WHERE knob IS NULL AND watched
    ),
    series AS (
        FROM io_series SEMI JOIN defaults USING (run_id)
    ),
    reads AS (
        SELECT run_id, t_s, requests, latency_mean_us AS latency
        FROM series WHERE op = 'read' AND requests > 0 AND latency_mean_us > 0
    ),
    writes AS (SELECT run_id, t_s, sum(requests) AS writes FROM series WHERE op = 'write' GROUP BY ALL),
    together AS (
        SELECT r.*, coalesce(writes, 0) AS written, avg(coalesce(writes, 0)) OVER (PARTITION BY run_id) AS usual
        FROM reads r LEFT JOIN writes USING (run_id, t_s)
    ),
    states AS (
        SELECT *, usual > 0 AND written <= 0.1 * usual AS quiet, usual > 0 AND written >= usual AS busy FROM together
    ),
    runs_judged AS (
        SELECT run_id,
            sum(latency * requests) FILTER (quiet) / sum(requests) FILTER (quiet) AS quiet_us,
            sum(latency * requests) FILTER (busy) / sum(requests) FILTER (busy) AS busy_us,
            sum(latency * requests) AS waited_us,
            sum(requests) AS reads
        FROM states
        GROUP BY run_id
        HAVING count(*) FILTER (quiet) >= {_LEAST_INTERVALS} AND count(*) FILTER (busy) >= {_LEAST_INTERVALS}
    )
    SELECT dbms, device, workload, quiet_us, busy_us, waited_us - reads * quiet_us AS saved_us,
        window_s * 1e6 * greatest(threads, 1) AS available_us
    FROM runs_judged
    JOIN runs USING (run_id)
    JOIN cases USING (dbms, device, workload)
    JOIN defaults USING (run_id)
"""  # noqa: S608 - a number of ours


def measure_interference(connection: "duckdb.DuckDBPyConnection") -> "pd.DataFrame":
    """Return table `interference`: a row per case that has a run with intervals of both kinds."""
    import pandas as pd

    runs = connection.execute(_BY_RUN).df()
    saved = (runs["saved_us"] / runs["available_us"]).clip(-_MOST_SAVED, _MOST_SAVED)
    runs = runs.assign(slowdown=np.log(runs["busy_us"] / runs["quiet_us"]), gain=-np.log1p(-saved))
    rows = []
    for case, group in runs.groupby(_CASE, sort=True):
        gain = mean_over_runs(group["gain"])
        rows.append(
            {
                **dict(zip(_CASE, case, strict=True)),
                "runs": len(group),
                "quiet_us": group["quiet_us"].mean(),
                "busy_us": group["busy_us"].mean(),
                **mean_over_runs(group["slowdown"]),
                "gain": gain["estimate"],
                "gain_low": gain["low"],
                "gain_high": gain["high"],
            }
        )
    table = pd.DataFrame(rows)
    return table.assign(q_value=adjust_for_fdr(table["p_value"].to_numpy(float))) if rows else table
