"""What watching costs, measured by the kernel itself."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from loop_devices import Fio, Loop, watch_jobs

from knobscope.watch import open_watch

pytestmark = [pytest.mark.real, pytest.mark.long]

_SWITCH = Path("/proc/sys/kernel/bpf_stats_enabled")


@pytest.fixture
def statistics() -> Iterator[None]:
    """Let the kernel measure BPF programs; switched off again, since measuring costs too."""
    before = _SWITCH.read_text()
    _SWITCH.write_text("1")
    yield
    _SWITCH.write_text(before)


@pytest.mark.usefixtures("statistics")
def test_programs_cost_nanoseconds(loop: Loop, direct: Fio) -> None:
    with open_watch(loop.block, 4096, "device") as watch:
        profile = watch_jobs(watch, direct(loop.node, rw="randwrite", bs="4k", size="64m", iodepth=8))
    per_run = {row["program"]: row["time_ns"] / row["runs"] for row in profile["programs"] if row["runs"] > 1000}
    assert set(per_run) >= {"on_start", "on_issue", "on_complete"}
    assert max(per_run.values()) < 5000, per_run
    assert profile["lost_events"] == 0
