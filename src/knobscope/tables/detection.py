"""Tables of comparisons and findings."""

from knobscope.tables.case import CASE

__all__ = ["DETECTION_TABLES"]

DETECTION_TABLES: dict[str, dict[str, str]] = {
    # One-at-a-time effects against the sentinel of the same block, per metric; natural-log ratios or differences.
    "effects": {
        **CASE,
        "tier": "VARCHAR",
        "tier_rank": "INTEGER",
        "knob": "VARCHAR",
        "value": "VARCHAR",
        "baseline": "VARCHAR",
        "unit": "VARCHAR",
        "step": "INTEGER",  # place above (+) or below (-) the baseline in the knob's order; NULL for special values
        "metric": "VARCHAR",
        "estimate": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # false discovery rate (Benjamini-Hochberg) over all effects of the metric
        "standard_error": "DOUBLE",
        "degrees": "INTEGER",  # residual degrees of freedom
        "noise": "DOUBLE",  # standard deviation of one run
        "reference": "DOUBLE",  # mean of the sentinel on the metric's own scale (geometric where effects are ratios)
        "runs": "INTEGER",
        "blocks": "INTEGER",
        "expect": "VARCHAR",
        "mechanism": "VARCHAR",
        "durability": "BOOLEAN",
    },
    # Whether the runs of a sweep block can be compared with each other; a resumed block has a row per session.
    "blocks": {
        "block_id": "VARCHAR",
        "session": "VARCHAR",
        **CASE,
        "sessions": "INTEGER",  # of the whole block
        "runs": "INTEGER",  # ok ones
        "sentinels": "INTEGER",  # ok ones
        "sentinel_change": "DOUBLE",  # natural-log ratio of throughput, last sentinel against the first
        "drift": "DOUBLE",  # natural-log change of throughput from the first run to the last, as a straight line
        "drift_p": "DOUBLE",
        "bend": "DOUBLE",  # natural-log distance of both ends from the middle, beside the straight line
        "bend_p": "DOUBLE",
        "treatment": "VARCHAR",  # none | position (its drift is a term of the model) | dropped
        "reason": "VARCHAR",
    },
    # Effects on throughput compared between two devices of different tiers: higher minus lower, natural-log ratios.
    "tier_contrasts": {
        "dbms": "VARCHAR",
        "workload": "VARCHAR",
        "knob": "VARCHAR",
        "value": "VARCHAR",
        "baseline": "VARCHAR",
        "lower_device": "VARCHAR",
        "higher_device": "VARCHAR",
        "estimate": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all contrasts of the study
    },
    # How much slower reads are while the device also writes, in runs of the default configuration of the sweep.
    "interference": {
        **CASE,
        "runs": "INTEGER",  # that have intervals of both kinds
        "quiet_us": "DOUBLE",  # mean latency of a read while (nearly) nothing is written
        "busy_us": "DOUBLE",  # while no less is written than usual
        "estimate": "DOUBLE",  # natural-log ratio, busy to quiet
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all cases
        "gain": "DOUBLE",  # natural-log ratio of throughput, if all reads were as fast as in quiet: an upper bound
        "gain_low": "DOUBLE",
        "gain_high": "DOUBLE",
    },
    # Order in which a file is asked for (system calls) and is read or written on the device, in runs of the default
    # configuration of the sweep. Files whose names change from run to run go together by their role.
    "access_contrasts": {
        **CASE,
        "file": "VARCHAR",
        "role": "VARCHAR",
        "op": "VARCHAR",
        "runs": "INTEGER",
        "calls": "BIGINT",
        "requests": "BIGINT",
        "call_bytes": "DOUBLE",  # in the mean of a call
        "request_bytes": "DOUBLE",
        "logical_share": "DOUBLE",  # sequential, of the calls
        "device_share": "DOUBLE",  # sequential, of the requests
        "logical_pattern": "VARCHAR",
        "device_pattern": "VARCHAR",
        "estimate": "DOUBLE",  # device minus logical
        "low": "DOUBLE",
        "high": "DOUBLE",
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all files of the study
    },
    # Every knob that a DBMS of the study has, whether the study varies it or not.
    "knobs": {
        "dbms": "VARCHAR",
        "knob": "VARCHAR",
        "mechanism": "VARCHAR",
        "in_study": "BOOLEAN",
    },
    "cases": {
        **CASE,
        "workload_class": "VARCHAR",
        "threads": "INTEGER",  # of the load generator
        "dedicated": "BOOLEAN",  # whether the DBMS has the file system to itself
    },
    "findings": {
        "rule": "VARCHAR",
        **CASE,
        "knob": "VARCHAR",
        "value": "VARCHAR",
        "verdict": "VARCHAR",  # mismatch | none | insufficient
        "effect": "DOUBLE",
        "effect_low": "DOUBLE",
        "effect_high": "DOUBLE",
        "penalty": "DOUBLE",
        "evidence": "VARCHAR",  # JSON
        "sentence": "VARCHAR",
        "confirmed": "VARCHAR",  # yes | no | not_tested
        "confirmation": "VARCHAR",  # sentence on the fio runs that reproduce it
    },
}
