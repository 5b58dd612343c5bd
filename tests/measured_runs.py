"""Runs on real servers, watched by the kernel's sums, or with probes by BPF."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from knobscope.devices import find_block_device
from knobscope.specs import Dbms, Value, Workload
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import Snapshot, load_values_of, prepare_snapshot
from knobscope.watch import open_watch
from knobscope.watch.interface import ProbeName


def measure_once(
    dbms: Dbms,
    workload: Workload,
    scratch: Path,
    snapshot: Snapshot,
    configuration: Mapping[str, Value],
    probes: Sequence[ProbeName] = (),
    **bench: Any,
) -> Any:
    """Return the record of a run; nothing of it may be left. The test is skipped where the probes do not work."""
    with open_watch(find_block_device(scratch), 4096, "process", "bpf" if probes else "procfs", probes) as watch:
        if watch.reason or (probes and watch.missing_probes):
            pytest.skip(str(watch.reason or dict(watch.missing_probes)))
        record = measure_run(Bench(dbms, workload, scratch, watch, **bench), "run", configuration, snapshot)
    assert list((scratch / "runs").iterdir()) == []
    return record


def load_and_measure(
    dbms: Dbms, workload: Workload, scratch: Path, configuration: dict[str, Value], **options: Any
) -> Any:
    """Return the record of a run on data that is loaded for it; options of `measure_once`."""
    loaded = load_values_of(dbms, configuration)
    snapshot = prepare_snapshot(dbms, workload, loaded, scratch, options.get("generator"))
    return measure_once(dbms, workload, scratch, snapshot, configuration, **options)
