"""Tables of the plan: which configurations run, in which order."""

__all__ = ["PLAN_TABLES"]

PLAN_TABLES: dict[str, dict[str, str]] = {
    # One row per planned run of a block, in the order in which it will run.
    "plan": {
        "block_id": "VARCHAR",
        "phase": "VARCHAR",  # screen | sweep
        "round": "INTEGER",
        "position": "INTEGER",
        "config_id": "VARCHAR",
        "is_sentinel": "BOOLEAN",
        "repeat": "INTEGER",
        "load_id": "VARCHAR",
        "configuration": "VARCHAR",  # JSON: knob -> value
        "is_chosen": "BOOLEAN",  # for what it would tell, so that it does not stand for all settings
    },
    "knob_values": {"config_id": "VARCHAR", "dbms": "VARCHAR", "knob": "VARCHAR", "value": "VARCHAR"},
}
