"""How much slower reads are while the device also writes, as the runs of the default configuration show it.

Each run is its own control: its tenths of a second with reads are parted into those in which (nearly) nothing was
written and those in which no less was written than usual. What both have in common, and what a checkpoint does besides
writing, is not told apart: it is evidence, no experiment, and the gain that it promises is an upper bound.

A device that writes all the time has no such moments. Then reads are compared with those of its profile, where nothing
was written, at the same number of reads in flight (Little's law: how long they take together, over the time).
"""

from typing import TYPE_CHECKING, Any

import numpy as np

from knobscope.stages.detect.units import UNIT_OF_RUN
from knobscope.statistics.paired import mean_over_units
from knobscope.statistics.regression import adjust_for_fdr

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_CASE = ["dbms", "device", "workload"]
#: Fewer intervals of a kind are a moment, not a state.
_LEAST_INTERVALS = 5
#: With fewer blocks whose runs have both kinds, those of no kind are compared with the device's profile.
_LEAST_BLOCKS = 3
#: Reads of the profile have 4 KiB; those that are larger than this take longer by themselves.
_MOST_BYTES = 16384
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
        SELECT run_id, t_s, requests, bytes, latency_mean_us AS latency
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
            count(*) FILTER (quiet) >= {_LEAST_INTERVALS}
                AND count(*) FILTER (busy) >= {_LEAST_INTERVALS} AS has_pauses,
            sum(latency * requests) FILTER (quiet) / sum(requests) FILTER (quiet) AS quiet_us,
            sum(latency * requests) FILTER (busy) / sum(requests) FILTER (busy) AS busy_us,
            sum(latency * requests) AS waited_us,
            sum(requests) AS reads,
            sum(bytes) / sum(requests) AS read_bytes
        FROM states
        WHERE usual > 0
        GROUP BY run_id
    )
    SELECT dbms, device, workload, has_pauses, quiet_us, busy_us, waited_us, reads, read_bytes,
        window_s * 1e6 AS window_us, serving, {UNIT_OF_RUN} AS unit
    FROM runs_judged
    JOIN runs USING (run_id)
    JOIN serving_threads() USING (dbms, device, workload)
    JOIN defaults USING (run_id)
"""  # noqa: S608 - numbers and words of ours

_ALONE = """
    SELECT device, queue_depth, max(iops) AS iops
    FROM device_curve
    WHERE curve = 'queue_depth' AND pattern = 'randread' AND iops > 0
    GROUP BY ALL
    ORDER BY ALL
"""


def measure_interference(connection: "duckdb.DuckDBPyConnection") -> "pd.DataFrame":
    """Return table `interference`: a row per case that has runs with reads together with writes."""
    import pandas as pd

    runs, curves = connection.execute(_BY_RUN).df(), connection.execute(_ALONE).df()
    rows = []
    for case, group in runs.groupby(_CASE, sort=True):
        paused = group[group["has_pauses"]]
        if paused["unit"].nunique() >= _LEAST_BLOCKS:
            comparison = _compare(paused, paused["quiet_us"], paused["busy_us"], "quiet")
        else:
            alone = _read_alone(group, curves[curves["device"] == group["device"].iloc[0]])
            comparison = _compare(group, alone, group["waited_us"] / group["reads"], "alone")
        rows.append({**dict(zip(_CASE, case, strict=True)), **comparison})
    table = pd.DataFrame(rows)
    if not rows:
        return table
    # What the profile says of another day has no p value that could be compared with those of moments of one run.
    p_values = table["p_value"].where(table["compared_with"] == "quiet")
    return table.assign(p_value=p_values, q_value=adjust_for_fdr(p_values.to_numpy(float)))


def _compare(
    runs: "pd.DataFrame", without: "pd.Series[float]", beside: "pd.Series[float]", compared_with: str
) -> dict[str, Any]:
    """Return how much longer reads take together with writes than without, and what would be gained if they did not."""
    saved = (runs["waited_us"] - runs["reads"] * without) / (runs["window_us"] * runs["serving"])
    gain = mean_over_units(-np.log1p(-saved.clip(-_MOST_SAVED, _MOST_SAVED)), runs["unit"])
    return {
        "runs": len(runs),
        "compared_with": compared_with,
        "quiet_us": without.mean(),
        "busy_us": beside.mean(),
        **mean_over_units(np.log(beside / without), runs["unit"]),
        "gain": gain["estimate"],
        "gain_low": gain["low"],
        "gain_high": gain["high"],
    }


def _read_alone(runs: "pd.DataFrame", curve: "pd.DataFrame") -> "pd.Series[float]":
    """Return what a read of each run would take by the device's profile; NaN where that does not tell."""
    in_flight = runs["waited_us"] / runs["window_us"]
    if curve.empty:
        return in_flight * np.nan
    depths = curve["queue_depth"].to_numpy(float)
    alone = in_flight * 0 + np.interp(in_flight, depths, depths * 1e6 / curve["iops"].to_numpy(float))
    return alone.where((in_flight <= depths.max()) & (runs["read_bytes"] <= _MOST_BYTES))
