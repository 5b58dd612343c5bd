"""Which file a request belongs to, told by the kernel while it is under way; and in which order files are used."""

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from loop_devices import Fio, Gated, Loop, open_loop, row_of, watch_jobs

from knobscope.watch import Profile, Watch, open_watch

pytestmark = pytest.mark.real

#: Reads blocks of 4 KiB of a file past the page cache, at the offsets given in blocks.
READER = """
import mmap, os, sys
buffer = mmap.mmap(-1, 4096)
file = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECT)
for block in sys.argv[2:]:
    os.preadv(file, [buffer], int(block) * 4096)
"""
_MIB = 1 << 20
_RANDOM = [(37 * i * i + 11 * i) % 4093 for i in range(200)]  # no two distances alike in a row


@pytest.fixture(scope="module", params=["ext4", pytest.param("xfs", marks=pytest.mark.long)])
def mounted(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with open_loop(tmp_path_factory.mktemp("files") / "image", 512, request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def watch(mounted: Loop) -> Iterator[Watch]:
    with open_watch(mounted.block, 4096, "device") as opened:
        yield opened


def files_of(profile: Profile, op: str) -> dict[str, Any]:
    """File or pseudo file -> its row."""
    return {row["name"]: row for row in profile["files"] if row["op"] == op}


def assert_complete(profile: Profile) -> None:
    """Files and addresses add up to all reads and writes, request by request and byte by byte."""
    for op in ("read", "write"):
        parts = [row for row in (*profile["files"], *profile["addresses"]) if row["op"] == op]
        for kind in ("requests", "bytes"):
            assert sum(row[kind] for row in parts) == row_of(profile, op)[kind]
    assert profile["files_overflow"] == profile["addresses_overflow"] == 0


def test_direct_and_buffered_requests_are_their_files(watch: Watch, mounted: Loop, direct: Fio, fio: Fio) -> None:
    assert mounted.mount is not None
    jobs = [
        direct(mounted.mount / "direct", rw="randwrite", bs="4k", size="8m", iodepth=8),
        direct(mounted.mount / "large", rw="write", bs="4m", size="16m"),  # larger than a request may be
        fio(mounted.mount / "cached", rw="write", bs="64k", size="8m", fsync=32),
        fio(mounted.mount / "later", rw="write", bs="64k", size="4m"),
    ]
    profile = watch_jobs(watch, *jobs, after=mounted.sync)
    files = files_of(profile, "write")
    sizes = {name: files[name]["bytes"] for name in ("direct", "large", "cached", "later")}
    assert sizes == {"direct": 8 * _MIB, "large": 16 * _MIB, "cached": 8 * _MIB, "later": 4 * _MIB}
    assert files["direct"]["inode"] == (mounted.mount / "direct").stat().st_ino
    assert files["direct"]["device"] == f"{mounted.block.major}:{mounted.block.minor}"
    assert files["journal"]["requests"] > 0
    assert profile["addresses"] == []
    assert_complete(profile)


def test_reads_are_their_files(watch: Watch, mounted: Loop, direct: Fio, fio: Fio) -> None:
    assert mounted.mount is not None
    for name in ("ahead", "past"):
        (mounted.mount / name).write_bytes(bytes(4 * _MIB))
    mounted.sync()
    jobs = [
        fio(mounted.mount / "ahead", rw="read", bs="4k", size="4m"),  # read ahead
        direct(mounted.mount / "past", rw="read", bs="4k", size="4m"),
    ]
    files = files_of(watch_jobs(watch, *jobs), "read")
    assert files["ahead"]["bytes"] == 4 * _MIB
    assert (files["past"]["requests"], files["past"]["bytes"]) == (1024, 4 * _MIB)


def test_files_that_come_and_go_have_their_names(watch: Watch, mounted: Loop) -> None:
    """The file system may give the inode number of a deleted file to the next one."""
    script = """
import os, sys
os.chdir(sys.argv[1])
for number in range(5):
    with open(f"temporary-{number}", "wb") as file:
        file.write(bytes((number + 1) << 16))
        os.fsync(file.fileno())
    os.unlink(f"temporary-{number}")
"""
    profile = watch_jobs(watch, Gated([sys.executable, "-c", script, str(mounted.mount)]), after=mounted.sync)
    files = files_of(profile, "write")
    assert [files[f"temporary-{number}"]["bytes"] >> 16 for number in range(5)] == [1, 2, 3, 4, 5]
    assert_complete(profile)


@pytest.mark.parametrize(
    ("blocks", "pattern"),
    [
        (list(range(100)), "sequential"),
        ([block for i in range(100) for block in (i, 1000 + i, 3000 + i)], "sequential"),
        (list(range(0, 400, 4)), "strided"),
        (list(range(400, 300, -1)), "strided"),
        (_RANDOM, "random"),
        ([*range(1000, 1200), *_RANDOM], "mixed"),
        (list(range(9)), "few"),
    ],
    ids=["sequential", "three-streams", "strided", "backwards", "random", "mixed", "few"],
)
def test_the_order_of_requests_has_a_name(watch: Watch, mounted: Loop, blocks: list[int], pattern: str) -> None:
    assert mounted.mount is not None
    file = mounted.mount / f"order-{pattern}"
    file.write_bytes(bytes(16 * _MIB))
    mounted.sync()
    profile = watch_jobs(watch, Gated([sys.executable, "-c", READER, str(file), *map(str, blocks)]))
    row = files_of(profile, "read")[file.name]
    assert row["requests"] == len(blocks)
    assert row["pattern"] == pattern
    shares = [row[f"{name}_share"] for name in ("sequential", "strided", "random")]
    assert sum(shares) == pytest.approx(1)
    assert min(shares) >= 0
    file.unlink()


def test_a_device_without_file_system_is_one_file(loop: Loop, direct: Fio, fio: Fio) -> None:
    jobs = [
        direct(loop.node, rw="randwrite", bs="4k", number_ios=101),
        fio(loop.node, rw="randwrite", bs="4k", size="16m", number_ios=53, ioengine="psync", direct=1),
        fio(loop.node, rw="read", bs="4k", size="1m"),
    ]
    with open_watch(loop.block, 4096, "device") as watch:
        profile = watch_jobs(watch, *jobs)
    assert set(files_of(profile, "write")) == set(files_of(profile, "read")) == {"device"}
    assert files_of(profile, "write")["device"]["requests"] == 154
    assert files_of(profile, "write")["device"]["inode"] is None
    assert_complete(profile)


def test_scope_process_counts_files_of_the_followed_only(mounted: Loop, direct: Fio) -> None:
    assert mounted.mount is not None
    followed = direct(mounted.mount / "mine", rw="randwrite", bs="4k", size="1m")
    other = direct(mounted.mount / "others", rw="randwrite", bs="4k", size="1m")
    with open_watch(mounted.block, 4096, "process") as watch:
        profile = watch_jobs(watch, followed, beside=(other,))
    files = files_of(profile, "write")
    assert files["mine"]["requests"] == 256
    assert "others" not in files
    assert_complete(profile)
