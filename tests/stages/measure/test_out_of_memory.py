"""A run in which a process is killed for memory fails and names the limit, whether the server lives on or not."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from measured_runs import measure_once
from shipped_specs import shipped_dbms

from knobscope.servers import fill_program
from knobscope.specs import Dbms, Workload
from knobscope.specs.models.programs import Program
from knobscope.stages.prepare import Snapshot

pytestmark = [
    pytest.mark.real,
    pytest.mark.skipif(os.geteuid() != 0, reason="control groups need root"),
]
#: Starts a server with a child that soon takes more memory than there is.
WITH_CHILD = '(sleep 0.5; exec python3 -c "bytearray(400 << 20)") & exec "$@"'


def test_a_server_killed_for_memory(
    postgresql: Dbms, short_workload: Workload, prepare: Callable[..., Snapshot], open_directory: Path
) -> None:
    limited = short_workload.model_copy(update={"memory_mib": 20})
    snapshot = prepare(postgresql, short_workload, open_directory)
    record = measure_once(postgresql, limited, open_directory, snapshot, {"shared_buffers": 262144})
    assert record["run"]["status"].startswith("failed")
    assert "killed for memory: the workload allows 20 MiB (memory_mib)" in record["run"]["reason"]


def test_a_child_killed_for_memory_under_a_server_that_lives_on(
    short_workload: Workload, prepare: Callable[..., Snapshot], open_directory: Path
) -> None:
    redis = shipped_dbms("redis")
    assert redis.lifecycle is not None
    program, *rest = redis.lifecycle.start
    start = ["sh", "-c", WITH_CHILD, "sh", fill_program(redis.programs[program]), *rest]
    shell = Program(find=["/bin/sh"], package="dash")
    changed = redis.model_copy(
        update={
            "lifecycle": redis.lifecycle.model_copy(update={"start": start}),
            "programs": {**redis.programs, "sh": shell},
        }
    )
    limited = short_workload.model_copy(update={"memory_mib": 128, "measure_s": 2.0})
    record = measure_once(changed, limited, open_directory, prepare(redis, short_workload, open_directory), {})
    assert record["run"]["throughput_ops"] > 0
    assert record["run"]["status"] == "failed_run"
    assert record["run"]["reason"] == "a process was killed for memory: the workload allows 128 MiB (memory_mib)"
