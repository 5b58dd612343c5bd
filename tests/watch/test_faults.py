"""What page faults show of mapped files, against what the program did."""

import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Fio, Gated, Loop, watch_jobs

from knobscope.watch import Profile, Watch, open_watch

pytestmark = pytest.mark.real

_PAGES = 8192

#: program(text) -> its command, with the file in `name` and a mapping of it in `m`.
Program = Callable[[str], Gated]


@pytest.fixture(scope="module")
def file(mounted: Loop) -> Path:
    assert mounted.mount is not None
    path = mounted.mount / "file"
    path.write_bytes(bytes(_PAGES * 4096))
    return path


@pytest.fixture(scope="module")
def watch(mounted: Loop, file: Path) -> Iterator[Watch]:
    with open_watch(mounted.block, 4096, "device", probes=["faults", "syscalls"], files="device") as opened:
        assert opened.monitor == "bpf", opened.reason
        if "faults" in opened.missing_probes:
            pytest.skip(opened.missing_probes["faults"])
        yield opened


@pytest.fixture
def cold(file: Path) -> None:
    """Nothing of the file in memory."""
    descriptor = os.open(file, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)


@pytest.fixture
def program(file: Path) -> Program:
    head = f"import mmap, os\nname = {str(file)!r}\nf = os.open(name, os.O_RDWR)\n"
    head += "m = mmap.mmap(f, 0); m.madvise(mmap.MADV_RANDOM)\n"
    return lambda text: Gated([sys.executable, "-c", head + text])


def run(watch: Watch, followed: Gated, *beside: Gated) -> Profile:
    profile = watch_jobs(watch, followed, beside=beside, after=os.sync)
    lost = dict(profile["lost_faults"])
    lost.pop("missed_events")  # may be other processes' events
    assert not any(lost.values()), lost
    return profile


def faults_of(profile: Profile) -> dict[str, Any]:
    row = next((row for row in profile["faults"] if row["name"] == "file"), None)
    if row is None:
        return dict.fromkeys(("faults", "pages_in", "pages_dirtied", "pages_written_back"), 0)
    if row["faults"] is None:
        pytest.skip("this kernel has no tracepoint mm_filemap_fault")
    return row


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize(
    "rw", ["randrw", *(pytest.param(rw, marks=pytest.mark.long) for rw in ("randread", "randwrite"))]
)
def test_random_faults_are_those_of_fio(watch: Watch, file: Path, fio: Fio, rw: str) -> None:
    job = fio(file, ioengine="mmap", rw=rw, bs="4k", size=f"{_PAGES * 4}k", number_ios=400)
    profile = run(watch, job)
    row, written = faults_of(profile), job.read("write")["total_ios"]
    assert (row["faults"], row["pages_in"], row["bytes_in"]) == (400, 400, 400 * 4096)
    assert (row["pages_dirtied"], row["pages_written_back"]) == (written, written)
    assert row["pattern"] == "random"
    modes = {way["op"]: (way["calls"], way["bytes"]) for way in profile["io_modes"] if way["mode"] == "mmap"}
    assert modes == {"read": (400, 400 * 4096), **({"write": (written, written * 4096)} if written else {})}


@pytest.mark.usefixtures("cold")
@pytest.mark.parametrize("rw", ["rw", *(pytest.param(rw, marks=pytest.mark.long) for rw in ("read", "write"))])
def test_scans_are_sequential_though_the_kernel_reads_ahead(watch: Watch, file: Path, fio: Fio, rw: str) -> None:
    job = fio(file, ioengine="mmap", rw=rw, bs="4k", size=f"{_PAGES * 4}k", number_ios=2000)
    row = faults_of(run(watch, job))
    assert row["sequential_share"] == pytest.approx(1, abs=0.02)
    assert row["pattern"] in ("sequential", "few")  # what is read ahead does not fault
    assert row["faults"] <= 2000 <= row["pages_in"]
    written = job.read("write")["total_ios"]
    assert written <= row["pages_dirtied"] == row["pages_written_back"]  # whole folios


@pytest.mark.usefixtures("cold")
def test_regions_tell_which_offsets(watch: Watch, program: Program) -> None:
    profile = run(watch, program("for i in (3, 260, 261, 5000): m[i * 4096]\nfor i in (4, 5001): m[i * 4096] = 1"))
    keys = ("faults", "pages_in", "pages_dirtied", "pages_written_back")
    regions = {
        r["offset"] >> 20: tuple(r[key] for key in keys) for r in profile["fault_regions"] if r["name"] == "file"
    }
    assert regions == {0: (2, 2, 1, 1), 1: (2, 2, 0, 0), 19: (2, 2, 1, 1)}


@pytest.mark.usefixtures("cold")
def test_calls_are_no_faults(watch: Watch, program: Program) -> None:
    """The same pages by read and write: brought in and dirtied, but not by faults; written back all the same."""
    calls = "for i in range(50): os.pread(f, 4096, i * 40960); os.pwrite(f, b'x', i * 40960)\n"
    profile = run(watch, program(f"m[4096]\n{calls}m[-1]"))
    row = faults_of(profile)
    assert (row["faults"], row["pages_in"], row["pages_dirtied"]) == (2, 2, 0)
    assert row["pages_written_back"] == 50


@pytest.mark.usefixtures("cold")
def test_a_fault_in_a_call_is_one(watch: Watch, program: Program) -> None:
    """Data sent straight from the mapping: the kernel faults on behalf of the call."""
    text = "import socket\na, b = socket.socketpair()\nview = memoryview(m)\n"
    profile = run(watch, program(text + "for i in range(20): a.send(view[i * 81920:][:100]); b.recv(100)"))
    row = faults_of(profile)
    assert (row["faults"], row["pages_in"]) == (20, 20)


@pytest.mark.usefixtures("cold")
def test_a_second_store_after_writing_back_is_seen(watch: Watch, program: Program) -> None:
    row = faults_of(run(watch, program("for _ in range(3): m[0] = 1; m[1] = 2; m.flush()")))
    assert (row["faults"], row["pages_dirtied"], row["pages_written_back"]) == (1, 3, 3)


@pytest.mark.usefixtures("cold")
def test_only_followed_processes_count(watch: Watch, program: Program) -> None:
    followed, other = program("for i in range(30): m[i * 40960]"), program("for i in range(90): m[(i * 10 + 5) * 4096]")
    row = faults_of(run(watch, followed, other))
    assert (row["faults"], row["pages_in"]) == (30, 30)


def test_a_mapping_in_memory_shows_hardly_a_fault(watch: Watch, file: Path, program: Program) -> None:
    file.read_bytes()
    row = faults_of(run(watch, program(f"for i in range({_PAGES}): m[i * 4096]")))
    assert row["faults"] <= _PAGES // 100  # on pages that ask for more to be read ahead
    assert row["pages_in"] == 0
