"""The columns that a table of runs may have, by what they tell about: the run, the knob that it changes, the case."""

from knobscope.tables import TABLES

#: Without these nothing can be compared. `knob` and `value` are empty in runs of the default configuration.
REQUIRED = ("dbms", "device", "tier", "workload", "knob", "value", "throughput_ops")

#: Facts of the case or device, the same in all its rows. Column -> type.
CASE_COLUMNS = {
    "dbms": "VARCHAR",
    "device": "VARCHAR",
    "tier": "VARCHAR",
    "workload": "VARCHAR",
    "workload_class": "VARCHAR",
    "threads": "INTEGER",
    "dedicated": "BOOLEAN",
}

#: Facts of the knob, the same in all its rows.
KNOB_COLUMNS = {
    "baseline": "VARCHAR",
    "order": "VARCHAR",  # words from low to high, as small|medium|large
    "special": "VARCHAR",  # numbers with a meaning of their own, as 0|-1
    "unit": "VARCHAR",
    "expect": "VARCHAR",
    "mechanism": "VARCHAR",
    "durability": "BOOLEAN",
}

#: What the import itself fills in.
_OWN = ("run_id", "study", "block_id", "phase", "round", "config_id", "is_sentinel")

#: Facts of one run.
RUN_COLUMNS = {
    "run": "VARCHAR",
    "block": "VARCHAR",
    "knob": "VARCHAR",
    "value": "VARCHAR",
    **{name: kind for name, kind in TABLES["runs"].items() if name not in _OWN and name not in CASE_COLUMNS},
}

_NO_SIDE = ("runs", "trials", "set_aside_runs")
#: More tables that can come along, each in a file of its own.
SIDE_TABLES = {
    **{table: columns for table, columns in TABLES.items() if "run_id" in columns and table not in _NO_SIDE},
    "device_profile": TABLES["device_profile"],
    "device_curve": TABLES["device_curve"],
}


def side_columns(table: str) -> dict[str, str]:
    """Return the columns of a file with a side table: those of the table, with `run` instead of `run_id`."""
    return {"run" if name == "run_id" else name: kind for name, kind in SIDE_TABLES[table].items()}
