"""Tables of rankings: which knobs matter, where, to what, and for how certain."""

from knobscope.tables.case import CASE

__all__ = ["SELECTION_TABLES"]

SELECTION_TABLES: dict[str, dict[str, str]] = {
    "importance": {
        **CASE,
        "round": "INTEGER",
        "model": "VARCHAR",
        "knob": "VARCHAR",
        "rank": "INTEGER",
        "importance": "DOUBLE",
        "permutation": "DOUBLE",
        "above_noise": "BOOLEAN",
        "selected": "BOOLEAN",
    },
    "important_points": {
        **CASE,
        "knob": "VARCHAR",
        "type": "VARCHAR",  # knee | turning | cliff
        "value": "VARCHAR",
        "turn_ratio": "DOUBLE",
        "share": "DOUBLE",  # of the variance, explained by the knob's main effect
        "score": "DOUBLE",  # turn ratio x share: the order of the points
    },
    # How the rank of a knob changes between two cases that differ in device only, or in workload only.
    "rank_drift": {
        "dbms": "VARCHAR",
        "changed": "VARCHAR",  # device | workload
        "same": "VARCHAR",  # the workload or device that both have
        "from_case": "VARCHAR",  # the device or workload of each
        "to_case": "VARCHAR",
        "knob": "VARCHAR",
        "rank_from": "INTEGER",
        "rank_to": "INTEGER",
        "change": "INTEGER",
        "drifts": "BOOLEAN",  # rank intervals apart, both rankings trustworthy, above noise in one of them
    },
    "rank_overlap": {
        "dbms": "VARCHAR",
        "changed": "VARCHAR",
        "same": "VARCHAR",
        "from_case": "VARCHAR",
        "to_case": "VARCHAR",
        "top": "INTEGER",  # so many leaders were compared
        "overlap": "INTEGER",
        "only_from": "VARCHAR",  # leaders of one case alone
        "only_to": "VARCHAR",
        "rank_correlation": "DOUBLE",  # Spearman's, over all knobs
        "drifting": "INTEGER",
        "trustworthy": "BOOLEAN",  # both rankings
    },
    # What a knob does to the I/O profile, from the screening runs; responses are counted per operation of the load.
    "io_related": {
        **CASE,
        "knob": "VARCHAR",
        "response": "VARCHAR",
        "runs": "INTEGER",  # configurations that it was tested with
        "explained_share": "DOUBLE",  # of the variance of the normal scores, beside stronger knobs
        "p_value": "DOUBLE",
        "q_value": "DOUBLE",  # over all knobs and responses of the case
        "verdict": "VARCHAR",  # related | none | insufficient
    },
    "fits": {
        **CASE,
        "round": "INTEGER",  # NULL where a model of an earlier study took the place of screening
        "prior": "VARCHAR",  # that model
        "model": "VARCHAR",
        "runs": "INTEGER",
        "stopped": "BOOLEAN",
        "reason": "VARCHAR",
        "r2_min": "DOUBLE",
        "r2_median": "DOUBLE",
        "holdout_r2": "DOUBLE",
        "trustworthy": "BOOLEAN",
        "reason_trust": "VARCHAR",
    },
}
