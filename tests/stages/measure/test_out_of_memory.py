"""A server that is killed for memory is told as such, with the limit that did it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.devices import find_block_device
from knobscope.specs import Dbms, Workload
from knobscope.stages.measure.run import Bench, measure_run
from knobscope.stages.prepare import Snapshot
from knobscope.watch import open_watch


@pytest.mark.real
def test_a_server_killed_for_memory(
    postgresql: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], open_directory: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("control groups need root")
    limited = short_workload.model_copy(update={"memory_mib": 20})
    snapshot = prepare(postgresql, short_workload, open_directory)
    with open_watch(find_block_device(open_directory), unit=4096, scope="process", prefer="procfs") as watch:
        bench = Bench(postgresql, limited, open_directory, watch)
        record = measure_run(bench, "run", {"shared_buffers": 262144}, snapshot)
    assert record["run"]["status"].startswith("failed")
    assert "killed for memory: the workload allows 20 MiB (memory_mib)" in record["run"]["reason"]
