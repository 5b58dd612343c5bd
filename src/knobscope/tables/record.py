"""What is kept of one run: its row of table `runs`, and its rows of the tables about single runs."""

from collections.abc import Mapping
from typing import Any, TypedDict, cast

from knobscope.tables.block_layer import (
    DeviceHealthRow,
    FileRow,
    IoLatencyRow,
    IoProfileRow,
    IoSeriesRow,
    IoSizeRow,
    LayoutIoRow,
    OperationIoRow,
    QueueDepthRow,
    SubmitterRow,
)
from knobscope.tables.calls import FaultRow, FileAccessRow, IoModeRow, SyscallRow
from knobscope.tables.runs import CheckRow, EffectiveValueRow, IntervalRow, OperationRow, PhaseRow, RunRow, StatementRow
from knobscope.tables.waits import WaitChainRow, WaitFileRow, WaitRow, WaitStackRow


class _RunRows(TypedDict, total=False):
    """Rows by table, without `run_id`; a table that is missing has none."""

    effective_values: list[EffectiveValueRow]
    phases: list[PhaseRow]
    intervals: list[IntervalRow]
    operations: list[OperationRow]
    statements: list[StatementRow]
    checks: list[CheckRow]
    io_profile: list[IoProfileRow]
    io_sizes: list[IoSizeRow]
    queue_depth: list[QueueDepthRow]
    io_latency: list[IoLatencyRow]
    io_series: list[IoSeriesRow]
    submitters: list[SubmitterRow]
    files: list[FileRow]
    operation_io: list[OperationIoRow]
    layout_io: list[LayoutIoRow]
    device_health: list[DeviceHealthRow]
    file_access: list[FileAccessRow]
    syscalls: list[SyscallRow]
    io_modes: list[IoModeRow]
    faults: list[FaultRow]
    waits: list[WaitRow]
    wait_chains: list[WaitChainRow]
    wait_files: list[WaitFileRow]
    wait_stacks: list[WaitStackRow]


class RunRecord(_RunRows):
    """A run as the store keeps it (JSON)."""

    run: RunRow


#: Tables of a block directory, in addition to `runs`.
BLOCK_TABLES: tuple[str, ...] = tuple(_RunRows.__annotations__)


def rows_of(record: RunRecord, table: str) -> list[Mapping[str, Any]]:
    """Return the rows that a run has in one of BLOCK_TABLES."""
    return cast("dict[str, list[Mapping[str, Any]]]", record).get(table, [])
