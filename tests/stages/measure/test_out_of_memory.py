"""A server that is killed for memory is told as such, with the limit that did it."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from measured_runs import measure_once

from knobscope.specs import Dbms, Workload
from knobscope.stages.prepare import Snapshot


@pytest.mark.real
def test_a_server_killed_for_memory(
    postgresql: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], open_directory: Path
) -> None:
    if os.geteuid() != 0:
        pytest.skip("control groups need root")
    limited = short_workload.model_copy(update={"memory_mib": 20})
    snapshot = prepare(postgresql, short_workload, open_directory)
    record = measure_once(postgresql, limited, open_directory, snapshot, {"shared_buffers": 262144})
    assert record["run"]["status"].startswith("failed")
    assert "killed for memory: the workload allows 20 MiB (memory_mib)" in record["run"]["reason"]
