"""Does a knob do the same on two devices? Differences between effects on throughput, with interval and q value."""

from typing import TYPE_CHECKING

from knobscope.statistics.regression import adjust_for_fdr, t_interval, t_probability

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["contrast_tiers"]

_KEY = ["dbms", "workload", "knob", "value", "baseline"]


def contrast_tiers(effects: "pd.DataFrame") -> "pd.DataFrame":
    """Return table `tier_contrasts`: every effect on a device minus that on each device of a lower tier.

    Devices are measured in different blocks, so the errors are independent; they need not be equal, so the degrees of
    freedom are Welch's (B. L. Welch, 1947).
    """
    throughput = effects[effects["metric"] == "throughput_ops"]
    columns = [*_KEY, "device", "tier_rank", "estimate", "standard_error", "degrees"]
    pairs = throughput[columns].merge(throughput[columns], on=_KEY, suffixes=("_lower", "_higher"))
    pairs = pairs[pairs["tier_rank_higher"] > pairs["tier_rank_lower"]].reset_index(drop=True)
    variances = [pairs[f"standard_error_{side}"].to_numpy(float) ** 2 for side in ("lower", "higher")]
    degrees = [pairs[f"degrees_{side}"].to_numpy(float) for side in ("lower", "higher")]
    total = variances[0] + variances[1]
    weights = [(variance / total.clip(1e-300)) ** 2 for variance in variances]
    joint = 1 / (weights[0] / degrees[0] + weights[1] / degrees[1]).clip(1e-9)
    estimates = (pairs["estimate_higher"] - pairs["estimate_lower"]).to_numpy(float)
    low, high = t_interval(estimates, total**0.5, joint)
    p_values = t_probability(estimates, total**0.5, joint)
    named = pairs.rename(columns={"device_lower": "lower_device", "device_higher": "higher_device"})
    return named.assign(estimate=estimates, low=low, high=high, p_value=p_values, q_value=adjust_for_fdr(p_values))
