"""Whose requests they are on ext4 and XFS: the parts add up to what the device did, and to what fio wrote."""

from collections.abc import Iterator

import pytest
from loop_devices import Fio, Job, Loop, open_loop, row_of, watch_jobs

from knobscope.watch import Profile, Watch, open_watch

pytestmark = [pytest.mark.real, pytest.mark.long]

PARTS = ("own", "inode", "journal", "flush", "foreign")


@pytest.fixture(scope="module", params=["ext4", "xfs"])
def device(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loop]:
    with open_loop(tmp_path_factory.mktemp("own") / "image", 512, request.param) as opened:
        yield opened


@pytest.fixture(scope="module")
def watch(device: Loop) -> Iterator[Watch]:
    with open_watch(device.block, 4096, "device") as opened:
        yield opened


def watch_to_the_end(watch: Watch, device: Loop, *followed: Job, beside: tuple[Job, ...] = ()) -> Profile:
    """Watch until all is written back; check that nothing is missing and nothing is counted twice."""
    device.sync()
    before = device.read_stat()
    profile = watch_jobs(watch, *followed, beside=beside, after=device.sync)
    after = device.read_stat()
    write, flush = row_of(profile, "write"), row_of(profile, "flush")
    for row in profile["io_profile"]:
        assert sum(row[f"{part}_requests"] for part in PARTS) == row["requests"] == row["device_requests"]
        assert sum(row[f"{part}_bytes"] for part in PARTS) == row["bytes"] == row["device_bytes"]
    assert write["bytes"] == (after[6] - before[6]) * 512
    assert write["requests"] + flush["preflush"] == after[4] - before[4]
    assert flush["requests"] == flush["flush_requests"] == after[15] - before[15]
    return profile


def test_appends_that_are_committed(watch: Watch, device: Loop, fio: Fio) -> None:
    """Data are the process' own, a commit per append is the journal's or, on XFS, the process' own too."""
    appends = 64
    job = fio(device.mount / "log", rw="write", bs="8k", size=appends * 8192, fsync=1, fallocate="none")  # type: ignore[operator]
    profile = watch_to_the_end(watch, device, job)
    write, flush = row_of(profile, "write"), row_of(profile, "flush")
    commits = job.read("sync")["total_ios"]
    assert (job.read("write")["total_ios"], commits) == (appends, appends - 1)  # fio leaves the last one out
    assert write["requests"] - write["meta"] == appends  # what file systems write for themselves bears that mark
    assert write["own_bytes"] + write["inode_bytes"] >= appends * 8192
    assert write["own_requests"] + write["journal_requests"] >= appends + commits - 1
    assert flush["flush_requests"] >= commits
    assert write["foreign_requests"] == 0
    assert profile["unattributed_share"] == 0


def test_direct_writes_are_the_process_own(watch: Watch, device: Loop, fio: Fio) -> None:
    assert device.mount is not None
    (device.mount / "direct").write_bytes(bytes(4 << 20))
    job = fio(device.mount / "direct", rw="randwrite", bs="8k", direct=1, ioengine="libaio", iodepth=8)
    profile = watch_to_the_end(watch, device, job)
    write = row_of(profile, "write")
    assert write["own_bytes"] == job.read("write")["io_bytes"] == 4 << 20
    assert write["own_requests"] == job.read("write")["total_ios"]
    assert write["inode_requests"] == write["foreign_requests"] == 0
    assert profile["unattributed_share"] == 0


def test_buffered_writes_of_two_are_distinguished(watch: Watch, device: Loop, fio: Fio) -> None:
    """Nobody calls fsync: the kernel writes both files back, and the file tells whose it is."""
    assert device.mount is not None
    files = [device.mount / "ours", device.mount / "theirs"]
    for file in files:
        file.write_bytes(bytes(4 << 20))
    ours = fio(files[0], rw="randwrite", bs="4k")
    theirs = fio(files[1], rw="randwrite", bs="4k", number_ios=512)
    profile = watch_to_the_end(watch, device, ours, beside=(theirs,))
    write = row_of(profile, "write")
    assert write["inode_bytes"] + write["own_bytes"] == ours.read("write")["io_bytes"] == 4 << 20
    assert write["foreign_bytes"] == theirs.read("write")["io_bytes"] == 2 << 20
    assert 0 < profile["unattributed_share"] < 1


def test_the_same_file_system_shared(device: Loop, fio: Fio) -> None:
    """Scope process: what the followed process wrote counts, and nothing of the other's."""
    assert device.mount is not None
    ours = fio(device.mount / "shared-ours", rw="write", bs="4k", size="2m", fdatasync=16, fallocate="none")
    theirs = fio(device.mount / "shared-theirs", rw="write", bs="64k", size="2m", direct=1)
    with open_watch(device.block, 4096, "process") as watch:
        profile = watch_jobs(watch, ours, beside=(theirs,), after=device.sync)
    write = row_of(profile, "write")
    assert 2 << 20 <= write["bytes"] == write["own_bytes"] + write["inode_bytes"] < 3 << 20
    assert write["foreign_bytes"] == 2 << 20
    assert {row["op"] for row in profile["io_sizes"]} == {"write"}
    assert sum(row["bytes"] * row["requests"] for row in profile["io_sizes"]) == write["bytes"]
