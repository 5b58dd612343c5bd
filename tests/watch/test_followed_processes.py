"""Whoever does the I/O of a followed process is followed: children, threads, and the kernel's workers for it."""

import sys
from collections.abc import Iterator

import pytest
from loop_devices import Fio, Gated, Loop, row_of, watch_jobs

from knobscope.watch import Watch, open_watch

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
    watch.follow([daemon.pid])
    watch.begin()
    daemon.run()
    write = row_of(watch.end(), "write")
    assert (write["own_requests"], write["device_requests"]) == (101, 101)
