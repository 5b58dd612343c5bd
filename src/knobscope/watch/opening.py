"""Chooses how to watch."""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from knobscope.devices import BlockDevice
from knobscope.errors import UserError
from knobscope.watch.interface import FileScope, ProbeName, Scope, Watch
from knobscope.watch.monitor import MonitorUnavailableError, MonitorWatch
from knobscope.watch.procfs import ProcfsWatch

#: Requests per second, from which on the full mode would take more than a tenth of a processor.
LIGHT_RATE = 200_000
LIGHT_HELP = (
    "count the requests of the whole device at their completions alone, which costs about a quarter: sizes, latency, "
    "mean depth, flushes, but no owners, files, order or alignment"
)
_LOOK_S = 0.1
_COMPLETED = (0, 4, 11, 15)  # columns of `stat`: reads, writes, discards, flushes
_MIN_UNIT, _MAX_UNIT = 512, 1 << 30  # what the monitor accepts


def open_watch(
    block: BlockDevice,
    unit: int,
    scope: Scope,
    prefer: Literal["bpf", "procfs"] = "bpf",
    probes: Sequence[ProbeName] = (),
    files: FileScope = "all",
    calls: Sequence[str] = (),
    trace: Path | None = None,
    light: bool | None = False,
) -> Watch:
    """Return a watch on a block device, to be used as a context manager.

    `unit` is the device's preferred write size in bytes: a request is aligned when offset and length are multiples of
    it. `probes` watch more than the block layer: `files` on any device or on this one, `calls` of these names or all
    that are known. With `trace`, a directory to keep them in during a run, every request is recorded too. `light`
    counts the whole device at completions alone; None: if it has more than LIGHT_RATE requests per second now. Where
    BPF is not available, the sums of procfs are used instead; the watch then knows the `reason`.
    """
    if not _MIN_UNIT <= unit <= _MAX_UNIT:
        raise UserError(f"preferred write size: expected {_MIN_UNIT} to {_MAX_UNIT} bytes, found {unit}")
    if prefer == "bpf":
        try:
            is_light = _is_busy(block) if light is None else light
            return MonitorWatch(block, unit, scope, probes, files, calls, trace, is_light=is_light)
        except MonitorUnavailableError as reason:
            return ProcfsWatch(block, scope, str(reason))
    return ProcfsWatch(block, scope)


def _is_busy(block: BlockDevice) -> bool:
    """Return whether the device completes more than LIGHT_RATE requests per second just now."""
    before, began = _count_completed(block), time.monotonic()
    time.sleep(_LOOK_S)
    return _count_completed(block) - before > LIGHT_RATE * (time.monotonic() - began)


def _count_completed(block: BlockDevice) -> int:
    numbers = Path(f"/sys/dev/block/{block.major}:{block.minor}/stat").read_text().split()
    return sum(int(numbers[column]) for column in _COMPLETED if column < len(numbers))
