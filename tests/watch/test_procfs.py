"""Totals without BPF: right where they can be known, silent where they cannot, and said once."""

import subprocess
import sys

import pytest
from loop_devices import Fio, Gated, Loop, row_of, watch_jobs

from knobscope.watch import WatchFailedError, open_watch
from knobscope.watch.text import format_profile

pytestmark = pytest.mark.real

#: An ordinary user asks: the monitor may not load BPF programs.
UNPRIVILEGED = """
import os, pwd, sys
from knobscope.devices import BlockDevice
from knobscope.watch import open_watch
os.setuid(pwd.getpwnam("nobody").pw_uid)
with open_watch(BlockDevice(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])), 4096, "device") as watch:
    watch.begin()
    print(watch.end()["monitor"])
    print(watch.describe_fallback())
"""


def test_totals_are_those_of_fio(loop: Loop, direct: Fio) -> None:
    job = direct(loop.node, rw="randrw", bs="8k", number_ios=1009)
    with open_watch(loop.block, 4096, "device", prefer="procfs") as watch:
        profile = watch_jobs(watch, job)
    for op in ("read", "write"):
        row = row_of(profile, op)
        assert (row["requests"], row["bytes"]) == (job.read(op)["total_ios"], job.read(op)["io_bytes"])
        assert row["aligned_share"] is row["own_requests"] is row["sync"] is None
    assert profile["monitor"] == "procfs"
    assert profile["lost_events"] is profile["unattributed_share"] is None
    assert profile["io_sizes"] == profile["queue_depth"] == profile["io_latency"] == profile["series"] == []
    assert "everything that reached the device, whoever caused it" in format_profile(profile)


def test_cpu_time_of_ended_children_counts(loop: Loop) -> None:
    """All that the tree took, and none of what a process took that is not followed."""
    spin = "import time\nend = time.process_time() + {}\nwhile time.process_time() < end: pass"
    tree = (
        f"import os, subprocess, sys; subprocess.run([sys.executable, '-c', {spin.format(0.3)!r}]); "
        "print(sum(os.times()[:4]), flush=True); sys.stdin.read()"
    )
    command = [sys.executable, "-c", tree]
    with (
        open_watch(loop.block, 4096, "device", prefer="procfs") as watch,
        subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0) as parent,
    ):
        watch.follow([parent.pid])
        watch.begin()
        Gated([sys.executable, "-c", spin.format(0.5)]).run()
        took = float(parent.stdout.readline())  # type: ignore[union-attr]
        profile = watch.end()
    assert 0.3 <= profile["cpu_s"] < took + 0.1


def test_end_without_begin_is_refused(loop: Loop) -> None:
    with (
        open_watch(loop.block, 4096, "device", prefer="procfs") as watch,
        pytest.raises(WatchFailedError, match="begin"),
    ):
        watch.end()


def test_fallback_says_why(loop: Loop) -> None:
    arguments = [loop.block.name, str(loop.block.major), str(loop.block.minor)]
    command = [sys.executable, "-c", UNPRIVILEGED, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    monitor, words = done.stdout.splitlines()
    assert monitor == "procfs"
    assert "block-level facts are not available (" in words
    assert "totals from procfs" in words
    assert "None" not in words
