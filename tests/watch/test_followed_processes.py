"""Whoever does the I/O of a followed process is followed: children, threads, and the kernel's workers for it."""

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from cgroups import empty_cgroup
from loop_devices import Fio, Gated, Loop, row_of, watch_jobs

from knobscope.watch import Watch, open_watch
from knobscope.watch.text import format_profile

pytestmark = pytest.mark.real

#: Forks twice, in a session of its own, and writes when nobody is its parent any more.
DAEMON = """
import os, sys
reader, writer = os.pipe()
if os.fork():
    os.close(writer)
    os.read(reader, 1)  # until the grandchild has ended
    sys.exit()
os.setsid()
if os.fork():
    os._exit(0)
device = os.open(sys.argv[1], os.O_WRONLY | os.O_DIRECT)
import mmap
page = mmap.mmap(-1, 4096)
for i in range(int(sys.argv[2])):
    os.pwrite(device, page, i * 4096)
"""
#: Moves itself into another cgroup, and writes there, itself and through a child.
MOVED = """
import mmap, os, subprocess, sys
device, group, times = sys.argv[1:]
open(group + "/cgroup.procs", "w").write(str(os.getpid()))
command = ["dd", "if=/dev/zero", "of=" + device, "bs=4k", "count=" + times, "oflag=direct", "conv=notrunc"]
subprocess.run(command, check=True)
file = os.open(device, os.O_WRONLY | os.O_DIRECT)
page = mmap.mmap(-1, 4096)
for i in range(int(times)):
    os.pwrite(file, page, i * 4096)
"""

WAYS = {
    "processes": {"ioengine": "psync", "numjobs": 3},
    "threads": {"ioengine": "psync", "numjobs": 3, "thread": 1},
    "threads-of-libc": {"ioengine": "posixaio", "iodepth": 8},
    "kernel-aio": {"ioengine": "libaio", "iodepth": 8},
    "io_uring": {"ioengine": "io_uring", "iodepth": 8},
    "io_uring-workers": {"ioengine": "io_uring", "iodepth": 8, "force_async": 1},
    "io_uring-polling-thread": {"ioengine": "io_uring", "iodepth": 8, "sqthread_poll": 1},
}


@pytest.fixture(scope="module")
def watch(loop: Loop) -> Iterator[Watch]:
    with open_watch(loop.block, 4096, "process") as opened:
        yield opened


@pytest.mark.parametrize("way", WAYS)
def test_one_of_two_is_followed(watch: Watch, loop: Loop, fio: Fio, way: str) -> None:
    """The other uses the same device at the same time, in the same way, with another block size."""
    options = {"rw": "randwrite", "direct": 1, "size": "64m", **WAYS[way]}
    followed = fio(loop.node, bs="4k", number_ios=211, **options)
    other = fio(loop.node, bs="16k", number_ios=307, **options)
    jobs = int(WAYS[way].get("numjobs", 1))
    profile = watch_jobs(watch, followed, beside=(other,))
    write = row_of(profile, "write")
    assert write["requests"] == write["own_requests"] == 211 * jobs
    assert (write["foreign_requests"], write["foreign_bytes"]) == (307 * jobs, 307 * jobs * 16384)
    assert profile["io_sizes"] == [{"op": "write", "bytes": 4096, "requests": 211 * jobs}]
    assert profile["unattributed_share"] == 0


def test_a_daemon_is_followed(watch: Watch, loop: Loop) -> None:
    daemon = Gated([sys.executable, "-c", DAEMON, loop.node, "101"])
    write = row_of(watch_jobs(watch, daemon), "write")
    assert (write["own_requests"], write["device_requests"]) == (101, 101)


@pytest.fixture
def groups() -> Iterator[list[Path]]:
    """Two cgroups side by side, empty at the end."""
    lines = (line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines())
    mount = next(Path(words[4]) for words in lines if "cgroup2" in words[words.index("-") :])
    made = [mount / f"test-{os.getpid()}-{number}" for number in range(2)]
    for group in made:
        group.mkdir()
    yield made
    for group in made:
        empty_cgroup(group)
        group.rmdir()


def test_a_process_that_moves_to_another_cgroup_is_followed(watch: Watch, loop: Loop, groups: list[Path]) -> None:
    moved = Gated([sys.executable, "-c", MOVED, loop.node, str(groups[0]), "53"])
    beside = Gated([sys.executable, "-c", DAEMON, loop.node, "31"])
    (groups[0] / "cgroup.procs").write_text(str(beside.pid))
    profile = watch_jobs(watch, moved, beside=(beside,))
    write = row_of(profile, "write")
    assert (write["own_requests"], write["foreign_requests"]) == (106, 31)
    assert profile["moved_processes"] == 1
    assert "1 time a followed process" in format_profile(profile | {"files": []})


def test_processes_of_two_cgroups_are_followed_and_come_back(watch: Watch, loop: Loop, groups: list[Path]) -> None:
    writers = [Gated([sys.executable, "-c", DAEMON, loop.node, count]) for count in ("41", "43")]
    sleepers = [subprocess.Popen(["sleep", "60"]) for _ in groups]
    for group, *processes in zip(groups, writers, sleepers, strict=True):
        for process in processes:
            (group / "cgroup.procs").write_text(str(process.pid))
    watch.follow([process.pid for process in (*writers, *sleepers)])
    inside = [Path(f"/proc/{sleeper.pid}/cgroup").read_text() for sleeper in sleepers]
    watch.begin()
    for writer in writers:
        writer.run()
    profile = watch.end()
    assert row_of(profile, "write")["own_requests"] == 84
    assert profile["moved_processes"] == 0
    for group, sleeper, during in zip(groups, sleepers, inside, strict=True):
        assert f"{group.name}/knobscope-" in during  # its own limits went on holding
        assert str(sleeper.pid) in (group / "cgroup.procs").read_text().split()
        sleeper.kill()
        sleeper.wait()
