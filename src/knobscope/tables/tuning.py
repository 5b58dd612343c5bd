"""Tables of tuners: what they tried and found."""

from knobscope.tables.case import CASE

__all__ = ["TUNING_TABLES"]

TUNING_TABLES: dict[str, dict[str, str]] = {
    # Configurations that tuners tried; their runs are in `runs`, with the default configuration between them.
    "trials": {
        **CASE,
        "space": "VARCHAR",  # topK or all
        "knobs": "INTEGER",  # in the space
        "seed": "INTEGER",
        "trial": "INTEGER",  # from 1
        "run_id": "VARCHAR",
        "config_id": "VARCHAR",
        "is_winner": "BOOLEAN",  # the best of its tuner, and better than the default was
    },
    # The best configuration of each tuner, measured again in blocks with the default; natural-log ratios to it.
    "tuned": {
        **CASE,
        "space": "VARCHAR",
        "seed": "INTEGER",
        "trial": "INTEGER",  # that found it; NULL: none beat the default
        "config_id": "VARCHAR",
        "estimate": "DOUBLE",
        "low": "DOUBLE",
        "high": "DOUBLE",
        "runs": "INTEGER",
    },
}
