"""What watching costs, measured by the kernel itself."""

import pytest
from loop_devices import Fio, Loop, watch_jobs

from knobscope.watch import open_watch

pytestmark = [pytest.mark.real, pytest.mark.long]


@pytest.mark.usefixtures("statistics")
def test_programs_cost_nanoseconds(loop: Loop, direct: Fio) -> None:
    with open_watch(loop.block, 4096, "device") as watch:
        profile = watch_jobs(watch, direct(loop.node, rw="randwrite", bs="4k", size="64m", iodepth=8))
    per_run = {row["program"]: row["time_ns"] / row["runs"] for row in profile["programs"] if row["runs"] > 1000}
    assert set(per_run) >= {"on_start", "on_issue", "on_complete"}
    assert max(per_run.values()) < 5000, per_run
    assert profile["lost_events"] == 0
