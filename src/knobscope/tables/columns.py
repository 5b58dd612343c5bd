"""All tables of a study's database."""

from knobscope.tables.block_layer import BLOCK_LAYER_TABLES
from knobscope.tables.calls import CALLS_TABLES
from knobscope.tables.declaring import Column, columns_of
from knobscope.tables.detection import DETECTION_TABLES
from knobscope.tables.devices import DEVICES_TABLES
from knobscope.tables.plan import PLAN_TABLES
from knobscope.tables.remeasuring import REMEASURING_TABLES
from knobscope.tables.runs import RUNS_TABLES
from knobscope.tables.selection import SELECTION_TABLES
from knobscope.tables.trace import TRACE_ROWS
from knobscope.tables.tuning import TUNING_TABLES
from knobscope.tables.waits import WAITS_TABLES

#: Table -> type of its rows.
ROWS: dict[str, type] = {
    **PLAN_TABLES,
    **RUNS_TABLES,
    **BLOCK_LAYER_TABLES,
    **CALLS_TABLES,
    **WAITS_TABLES,
    **DEVICES_TABLES,
    **SELECTION_TABLES,
    **TUNING_TABLES,
    **DETECTION_TABLES,
    **REMEASURING_TABLES,
}

#: Table -> column -> what is known about it.
COLUMNS: dict[str, dict[str, Column]] = {table: columns_of(row) for table, row in ROWS.items()}

#: Table -> column -> DuckDB type. Units are in the names.
TABLES: dict[str, dict[str, str]] = {
    table: {name: column.type for name, column in columns.items()} for table, columns in COLUMNS.items()
}

#: The same for the tables of a trace, which lie in a directory of their own per run and in no study's database.
TRACE_TABLES: dict[str, dict[str, str]] = {
    table: {name: column.type for name, column in columns_of(row).items()} for table, row in TRACE_ROWS.items()
}
