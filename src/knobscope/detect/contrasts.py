"""Two devices compared: does a knob do the same on both, and is a configuration as fast on the higher tier?

Devices are measured in different blocks, so the errors are independent; they need not be equal, so the degrees of
freedom are Welch's (B. L. Welch, 1947).
"""

from typing import TYPE_CHECKING

import numpy as np

from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability

if TYPE_CHECKING:
    import duckdb
    import pandas as pd

__all__ = ["contrast_levels", "contrast_tiers"]

_ESTIMATE = ["device", "tier_rank", "estimate", "standard_error", "degrees"]
#: The level of every configuration on every device: a block's runs with it are one measurement, since what they have in
#: common (server, caches, time of the day) is no property of the device. NULL errors: fewer than two blocks.
_LEVELS = """
    WITH measured AS (
        SELECT DISTINCT r.dbms, r.workload, r.device, b.knob, b.value, r.block_id, r.session, r.run_id,
            r.throughput_ops, r.latency_p95_us
        FROM runs_behind b JOIN runs r USING (run_id)
        WHERE b.knob IS NULL OR b.side = 'value'
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
    compared = _compare(throughput, ["dbms", "workload", "knob", "value", "baseline"])
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
    variances = [pairs[f"standard_error_{side}"].to_numpy(float) ** 2 for side in ("lower", "higher")]
    degrees = [np.maximum(pairs[f"degrees_{side}"].to_numpy(float), 1e-9) for side in ("lower", "higher")]
    total = variances[0] + variances[1]
    weights = [(variance / total.clip(1e-300)) ** 2 for variance in variances]
    joint = 1 / (weights[0] / degrees[0] + weights[1] / degrees[1]).clip(1e-9)
    differences = (pairs["estimate_higher"] - pairs["estimate_lower"]).to_numpy(float)
    low, high = t_interval(differences, total**0.5, joint)
    p_values = t_probability(differences, total**0.5, joint)
    named = pairs.rename(columns={"device_lower": "lower_device", "device_higher": "higher_device"})
    return named.assign(estimate=differences, low=low, high=high, p_value=p_values)
