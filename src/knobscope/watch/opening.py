"""Chooses how to watch."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from knobscope.devices import BlockDevice
from knobscope.errors import UserError
from knobscope.watch.interface import FileScope, ProbeName, Scope, Watch
from knobscope.watch.monitor import MonitorUnavailableError, MonitorWatch
from knobscope.watch.procfs import ProcfsWatch

__all__ = ["open_watch"]

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
) -> Watch:
    """Return a watch on a block device, to be used as a context manager.

    `unit` is the device's preferred write size in bytes: a request is aligned when offset and length are multiples of
    it. `probes` watch more than the block layer: `files` on any device or on this one, `calls` of these names or all
    that are known. With `trace`, a directory to keep them in during a run, every request is recorded too. Where BPF is
    not available, the sums of procfs are used instead; the watch then knows the `reason`.
    """
    if not _MIN_UNIT <= unit <= _MAX_UNIT:
        raise UserError(f"preferred write size: expected {_MIN_UNIT} to {_MAX_UNIT} bytes, found {unit}")
    if prefer == "bpf":
        try:
            return MonitorWatch(block, unit, scope, probes, files, calls, trace)
        except MonitorUnavailableError as reason:
            return ProcfsWatch(block, scope, str(reason))
    return ProcfsWatch(block, scope)
