"""Every way in which fio can ask for I/O, in every pattern: the monitor counts what fio did, request by request."""

import sys
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest
from fio_log import Request, count_sequential, read_log
from loop_devices import Fio, Gated, Loop, add_partition, delete_partition, row_of, watch_jobs

from knobscope.devices import find_block_device
from knobscope.watch import Watch, open_watch

pytestmark = pytest.mark.real

ENGINES = ("sync", "pvsync", "pvsync2", "psync", "posixaio", "libaio", "io_uring")  # mmap: test_page_cache.py
PATTERNS = ("read", "write", "randread", "randwrite", "rw", "randrw")
#: Every pattern in one way, and every other way in one pattern; block I/O of the first three is that of psync.
QUICK = {*(("psync", pattern) for pattern in PATTERNS), *((engine, "randrw") for engine in ENGINES[3:])}
WAYS = [
    pytest.param(engine, pattern, marks=() if (engine, pattern) in QUICK else pytest.mark.long)
    for engine in ENGINES
    for pattern in PATTERNS
]
FIRST, SIZE, BLOCK = 16 << 20, 64 << 20, 8192
REQUESTS = 307
FLUSH = "import os, sys; device = os.open(sys.argv[1], os.O_WRONLY); [os.fsync(device) for _ in range(3)]"


@pytest.fixture(scope="module")
def watch(loop: Loop) -> Iterator[Watch]:
    with open_watch(loop.block, BLOCK, "device") as opened:
        yield opened


@pytest.mark.parametrize(("engine", "pattern"), WAYS)
def test_direct_requests_are_those_of_fio(
    watch: Watch, loop: Loop, fio: Fio, tmp_path: Path, engine: str, pattern: str
) -> None:
    log = tmp_path / "requests"
    options = {"rw": pattern, "bs": BLOCK, "offset": FIRST, "size": SIZE, "number_ios": REQUESTS}
    depth = 4 if engine in ("posixaio", "libaio", "io_uring") else 1
    job = fio(loop.node, ioengine=engine, direct=1, iodepth=depth, write_iolog=log, **options)
    before = loop.read_stat()
    profile = watch_jobs(watch, job)
    after = loop.read_stat()
    done = read_log(log)
    assert len(done) == REQUESTS
    for op, column in (("read", 0), ("write", 4)):
        row, wanted = row_of(profile, op), [request for request in done if request.op == op]
        size = BLOCK * len(wanted)
        assert (job.read(op)["total_ios"], job.read(op)["io_bytes"]) == (len(wanted), size)
        assert (after[column] - before[column], (after[column + 2] - before[column + 2]) * 512) == (len(wanted), size)
        assert (row["requests"], row["bytes"]) == (row["own_requests"], row["own_bytes"]) == (len(wanted), size)
        assert row["aligned_requests"] == len(wanted)
        assert row["sequential_requests"] == count_sequential(wanted)
        assert row["sequential_bytes"] == BLOCK * row["sequential_requests"]
        if wanted:
            assert row["sequential_share"] == 1.0 if "rand" not in pattern else row["sequential_share"] < 0.05
    label = "random" if "rand" in pattern else "sequential"
    assert {(row["op"], row["requests"], row["pattern"]) for row in profile["files"] if row["requests"]} == {
        (op, count, label) for op, count in Counter(request.op for request in done).items()
    }
    assert {(row["op"], row["bytes"]): row["requests"] for row in profile["io_sizes"]} == count_sizes(done)
    assert profile["lost_events"] == profile["completions_without_start"] == profile["failed_requests"] == 0
    assert profile["unattributed_share"] == 0


def count_sizes(requests: list[Request]) -> Counter[tuple[str, int]]:
    return Counter((request.op, request.length) for request in requests)


def test_a_flush_alone_is_no_write(watch: Watch, loop: Loop) -> None:
    """The kernel's own sums count it as a write."""
    job = Gated([sys.executable, "-c", FLUSH, loop.node])
    before = loop.read_stat()
    profile = watch_jobs(watch, job)
    after = loop.read_stat()
    assert (row_of(profile, "write")["requests"], row_of(profile, "flush")["requests"]) == (0, 3)
    assert (after[4] - before[4], after[15] - before[15]) == (3, 3)
    assert profile["io_sizes"] == []


def test_requests_are_where_fio_put_them(loop: Loop, fio: Fio, tmp_path: Path) -> None:
    """Two neighbouring ranges of the device, watched as partitions at the same time: each has the requests in it."""
    sectors, log = SIZE // 512 // 4, tmp_path / "requests"  # fio's range is four such parts, two of them are watched
    job = fio(
        loop.node, rw="randwrite", bs=BLOCK, offset=FIRST, size=SIZE, number_ios=REQUESTS, write_iolog=log, direct=1
    )
    starts = [FIRST // 512 + part * sectors for part in (1, 2)]
    with ExitStack() as stack:
        for number, start in enumerate(starts, 1):
            add_partition(loop.node, number, start, sectors)
            stack.callback(delete_partition, loop.node, number)
        partitions = [find_block_device(Path(f"{loop.node}p{number}")) for number in (1, 2)]
        watches = [stack.enter_context(open_watch(partition, BLOCK, "device")) for partition in partitions]
        for watch in watches:
            watch.begin()
        job.run()
        profiles = [watch.end() for watch in watches]
    offsets = [request.offset // 512 for request in read_log(log)]
    expected = [sum(start <= offset < start + sectors for offset in offsets) for start in starts]
    assert [row_of(profile, "write")["requests"] for profile in profiles] == expected
    assert 0 < sum(expected) < REQUESTS
