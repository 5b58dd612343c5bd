"""All tables of a study's database."""

from knobscope.tables.block_layer import BLOCK_LAYER_TABLES
from knobscope.tables.calls import CALLS_TABLES
from knobscope.tables.detection import DETECTION_TABLES
from knobscope.tables.devices import DEVICES_TABLES
from knobscope.tables.plan import PLAN_TABLES
from knobscope.tables.runs import RUNS_TABLES
from knobscope.tables.selection import SELECTION_TABLES
from knobscope.tables.tuning import TUNING_TABLES

__all__ = ["TABLES"]

#: Table -> column -> DuckDB type. Units are in the names.
TABLES: dict[str, dict[str, str]] = {
    **PLAN_TABLES,
    **RUNS_TABLES,
    **BLOCK_LAYER_TABLES,
    **CALLS_TABLES,
    **DEVICES_TABLES,
    **SELECTION_TABLES,
    **TUNING_TABLES,
    **DETECTION_TABLES,
}
