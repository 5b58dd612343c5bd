"""What reaches the device through the page cache: bytes are exact, requests are the kernel's choice.

Every job touches each block of its file once, and the cache is empty before. Reads that follow on each other make the
kernel read ahead, here to the end of the file. A page that is mapped is read before it is written.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from loop_devices import Fio, Loop, Syncs, open_loop, row_of, watch_jobs

from knobscope.watch import Watch, open_watch

pytestmark = pytest.mark.real

SIZE = 2 << 20


@dataclass(frozen=True)
class Watched:
    """A file on a file system of its own, under the monitor."""

    loop: Loop
    file: Path
    watch: Watch


@pytest.fixture(scope="module", params=["ext4", pytest.param("xfs", marks=pytest.mark.long)])
def watched(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    image = tmp_path_factory.mktemp("cached") / "image"
    with open_loop(image, 512, request.param) as loop, open_watch(loop.block, 4096, "device") as watch:
        assert loop.mount is not None
        file = loop.mount / "file"
        file.write_bytes(bytes(SIZE))
        loop.sync()
        yield Watched(loop, file, watch)


@pytest.mark.parametrize("pattern", ["read", "write", "randread", "randwrite", "rw", "randrw"])
@pytest.mark.parametrize("engine", ["mmap", "psync"])
def test_bytes_are_those_of_fio(watched: Watched, fio: Fio, syncs: Syncs, engine: str, pattern: str) -> None:
    job = fio(watched.file, ioengine=engine, rw=pattern, bs="8k")
    before = watched.loop.read_stat()
    profile = watch_jobs(watched.watch, job, after=watched.loop.sync)
    after = watched.loop.read_stat()
    read, write, flush = (row_of(profile, op) for op in ("read", "write", "flush"))
    is_read_whole = engine == "mmap" or pattern in ("read", "rw")
    assert read["bytes"] == (SIZE if is_read_whole else job.read("read")["io_bytes"])
    assert read["own_requests"] == read["requests"]
    assert write["foreign_requests"] == 0  # what is left is the file system's journal
    assert (read["requests"], read["bytes"]) == (after[0] - before[0], (after[2] - before[2]) * 512)
    own, asked = write["own_bytes"] + write["inode_bytes"], job.read("write")["io_bytes"]
    requests, of_kernel = write["requests"] + flush["preflush"], after[4] - before[4]
    if syncs.came():  # a page that changes after it was written is written again
        assert own >= asked
        assert requests <= of_kernel
    else:
        assert own == asked
        assert (requests, write["bytes"]) == (of_kernel, (after[6] - before[6]) * 512)
    assert profile["lost_events"] == profile["unattributed_share"] == 0


def test_pages_that_are_there_need_no_device(watched: Watched, fio: Fio) -> None:
    watched.file.read_bytes()
    job = fio(watched.file, ioengine="mmap", rw="randread", bs="8k", invalidate=0)
    profile = watch_jobs(watched.watch, job)
    assert job.read("read")["io_bytes"] == SIZE
    assert row_of(profile, "read")["requests"] == 0
