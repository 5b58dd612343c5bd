"""Tables: types of their rows, with columns, DuckDB types and meanings: the interface between stages, rules and users.

Each stage's tables are a module of their own; a table is declared there and nowhere else.
"""

from knobscope.tables.block_layer import BACKGROUND, DeviceHealthRow, FileRow, IoProfileRow, LayoutIoRow, OperationIoRow
from knobscope.tables.calls import FaultRow, FileAccessRow
from knobscope.tables.checking import check_document, read_document
from knobscope.tables.columns import COLUMNS, ROWS, TABLES, TRACE_TABLES
from knobscope.tables.declaring import CutColumns, empty_row, select_columns
from knobscope.tables.detection import FastestRow
from knobscope.tables.devices import DeviceProfile
from knobscope.tables.locking import LOCKED, bounded, describe_refusal, fetch_rows, lock, open_files
from knobscope.tables.plan import LeftOutRow, PlanRow
from knobscope.tables.record import BLOCK_TABLES, RunRecord, rows_of
from knobscope.tables.remeasuring import SensitivityRow, WhatIfRow, WhatIfRunRow
from knobscope.tables.runs import (
    NO_BLOCK,
    EffectiveValueRow,
    IntervalRow,
    MonitorFacts,
    OperationRow,
    RunRow,
    StatementRow,
)
from knobscope.tables.tuning import TrialRow
from knobscope.tables.writing import insert_rows, read_table, require_readable, write_files, write_table, write_tables
