"""Everything that runs of a case need, opened and closed together: device, its lock, the watch."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from knobscope.devices import device_lock, open_device
from knobscope.measure.block import Measurer
from knobscope.measure.progress import BlockProgress
from knobscope.measure.run import Bench
from knobscope.measure.store import RunStore
from knobscope.prepare import DiskRoom
from knobscope.specs import Case, StudySpecs
from knobscope.watch import open_watch

__all__ = ["open_measurer"]


@contextmanager
def open_measurer(
    specs: StudySpecs,
    case: Case,
    root: Path,
    profile: Path,
    store_directory: Path,
    progress: BlockProgress,
    traces: Path | None = None,
) -> Iterator[Measurer]:
    """Yield what measures runs of a case; the device belongs to it alone until the end.

    `traces`: directory for a trace of every run, a directory each.
    """
    facts = json.loads(profile.read_text())
    with open_device(specs.devices[case.device], root, specs.study.name) as device, device_lock(device.block):
        scope: Literal["device", "process"] = "device" if device.dedicated else "process"
        unit = int(facts["preferred_write_bytes"])
        wanted = specs.study.watch
        with open_watch(device.block, unit, scope, specs.study.monitor, wanted, files="device", trace=traces) as watch:
            workload = specs.workloads[case.workload]
            generator = specs.generators.get(workload.generator)
            room = DiskRoom(
                specs.study.name, specs.study.budget.disk_gb, device.directory, root / "results" / specs.study.name
            )
            room.require(room.largest_copy(), "a copy of the loaded data")
            bench = Bench(specs.dbms[case.dbms], workload, device.directory, watch, generator, room, traces)
            store = RunStore(store_directory)
            if watch.reason is not None and not store.knows("monitor_reason", watch.reason):
                print(watch.describe_fallback(), file=sys.stderr)  # once per study, not per block
            for probe, reason in watch.missing_probes.items():
                print(f"knobscope: no {probe} to be had ({reason})", file=sys.stderr)
            yield Measurer(specs, case, bench, facts["tier"], store, progress)
