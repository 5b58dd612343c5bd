"""Two devices compared: does a knob do the same on both, and is a configuration as fast on the higher tier?

Devices are measured in different blocks, so the errors are independent.
"""

from typing import TYPE_CHECKING

import numpy as np

from knobscope.statistics.independent import join_errors
from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

_ESTIMATE = ["device", "tier_rank", "estimate", "standard_error", "degrees"]
#: The level of every configuration on every device: a block's runs with it are one measurement, since what they have in
#: common (server, caches, time of the day) is no property of the device. NULL errors: fewer than two blocks. Sessions
#: on another level than most would say more of that day than of the device.
_LEVELS = """
    WITH measured AS (
        SELECT DISTINCT r.dbms, r.workload, r.device, b.knob, b.value, r.block_id, r.session, r.run_id,
            r.throughput_ops, r.latency_p95_us
        FROM runs_behind b JOIN runs r USING (run_id)
        WHERE (b.knob IS NULL OR b.side = 'value') AND NOT EXISTS (
            FROM unusual_groups u WHERE u.block_id = r.block_id AND u.session IS NOT DISTINCT FROM r.session
        )
    ),
    of_blocks AS (
        SELECT dbms, workload, device, knob, value, block_id, session,
            avg(ln(nullif(throughput_ops, 0))) AS throughput_ops, avg(ln(nullif(latency_p95_us, 0))) AS latency_p95_us
        FROM measured
        GROUP BY ALL
    )
    SELECT dbms, workload, knob, value, metric, device, tier_rank,
        avg(level) AS estimate,
        stddev_samp(level) / sqrt(count(*)) AS standard_error,
        (count(*) - 1)::DOUBLE AS degrees
    FROM (UNPIVOT of_blocks ON throughput_ops, latency_p95_us INTO NAME metric VALUE level)
    JOIN device_tiers USING (device)
    GROUP BY ALL
"""


def contrast_tiers(effects: "pd.DataFrame") -> "pd.DataFrame":
    """Return table `tier_contrasts`: every effect on a device minus that on each device of a lower tier."""
    throughput = effects[effects["metric"] == "throughput_ops"]
    compared = _compare(throughput, ["dbms", "workload", "knob", "value", "baseline", "beside"])
    return compared.assign(q_value=adjust_for_fdr(compared["p_value"].to_numpy(float)))


def contrast_levels(connection: "duckdb.DuckDBPyConnection") -> "pd.DataFrame":
    """Return table `level_contrasts`: every configuration on a device against itself on each device of a lower tier."""
    compared = _compare(connection.execute(_LEVELS).df(), ["dbms", "workload", "knob", "value", "metric"])
    q_values = compared.groupby("metric")["p_value"].transform(lambda p: adjust_for_fdr(p.to_numpy()))
    return compared.assign(q_value=q_values)


def _compare(estimates: "pd.DataFrame", key: list[str]) -> "pd.DataFrame":
    """Pair what has the same key on two tiers; returns the differences, higher minus lower, without q values."""
    columns = estimates[[*key, *_ESTIMATE]]
    pairs = columns.merge(columns, on=key, suffixes=("_lower", "_higher"))
    pairs = pairs[pairs["tier_rank_higher"] > pairs["tier_rank_lower"]].reset_index(drop=True)
    errors, degrees = (
        np.array([pairs[f"{column}_{side}"].to_numpy(float) for side in ("lower", "higher")])
        for column in ("standard_error", "degrees")
    )
    error, joint = join_errors(errors, degrees)
    differences = (pairs["estimate_higher"] - pairs["estimate_lower"]).to_numpy(float)
    low, high = t_interval(differences, error, joint)
    p_values = t_probability(differences, error, joint)
    named = pairs.rename(columns={"device_lower": "lower_device", "device_higher": "higher_device"})
    return named.assign(estimate=differences, low=low, high=high, p_value=p_values)
