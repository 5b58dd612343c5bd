"""Who submitted requests, by name; which bios were merged into others or split."""

from pathlib import Path
from typing import Any

import pytest
from loop_devices import Fio, Loop, row_of, watch_jobs

from knobscope.watch import Profile, open_watch

pytestmark = pytest.mark.real


def submitters_of(profile: Profile, op: str) -> dict[str, Any]:
    """Name -> requests."""
    return {row["submitter"]: row["requests"] for row in profile["submitters"] if row["op"] == op}


def test_journal_and_writeback_are_named_apart(mounted: Loop, fio: Fio) -> None:
    assert mounted.mount is not None
    committed = fio(mounted.mount / "committed", rw="write", bs="8k", size="1m", fsync=1)
    with open_watch(mounted.block, 4096, "device") as watch:
        profile = watch_jobs(watch, committed)
    writes, journal = submitters_of(profile, "write"), f"jbd2/{mounted.block.name}-8"
    assert sum(writes.values()) == row_of(profile, "write")["device_requests"]
    assert writes["fio"] == row_of(profile, "write")["own_requests"]
    assert writes[journal] > 100  # one commit or more per fsync, of two requests or more
    assert submitters_of(profile, "flush")[journal] >= 100  # those it asked for, before or with a write


def test_kernel_workers_have_the_name_of_their_work(mounted: Loop, fio: Fio) -> None:
    assert mounted.mount is not None
    job = fio(mounted.mount / "later", rw="write", bs="64k", size="8m")
    number = f"{mounted.block.major}:{mounted.block.minor}"
    with open_watch(mounted.block, 4096, "device") as watch:
        profile = watch_jobs(watch, job, after=mounted.sync)
    assert submitters_of(profile, "write")[f"kworker/flush-{number}"] > 0
    assert row_of(profile, "write")["inode_bytes"] == 8 << 20


@pytest.mark.parametrize(
    ("options", "thread"),
    [({"sqthread_poll": 1}, "iou-sqp"), ({"force_async": 1}, "iou-wrk")],
    ids=["polling", "workers"],
)
def test_threads_of_io_uring_are_the_workloads(loop: Loop, direct: Fio, options: dict[str, int], thread: str) -> None:
    job = direct(loop.node, rw="randwrite", bs="4k", number_ios=503, ioengine="io_uring", iodepth=4, **options)
    with open_watch(loop.block, 4096, "process") as watch:
        profile = watch_jobs(watch, job)
    assert row_of(profile, "write")["own_requests"] == 503
    assert submitters_of(profile, "write").get(thread, 0) > 0
    assert sum(submitters_of(profile, "write").values()) == 503


def test_whose_bios_were_merged_or_split_is_not_known(loop: Loop, direct: Fio) -> None:
    with open_watch(loop.block, 4096, "process") as watch:
        profile = watch_jobs(watch, direct(loop.node, rw="write", bs="4k", number_ios=7))
    write = row_of(profile, "write")
    assert (write["requests"], write["merges"], write["splits"]) == (7, None, None)


def test_merges_and_requests_are_the_bios(loop: Loop, direct: Fio) -> None:
    batches = {"iodepth": 16, "iodepth_batch_submit": 16, "iodepth_batch_complete_min": 16}
    job = direct(loop.node, rw="write", bs="4k", size="4m", **batches)
    with open_watch(loop.block, 4096, "device") as watch:
        before = loop.read_stat()
        profile = watch_jobs(watch, job)
        after = loop.read_stat()
    write = row_of(profile, "write")
    assert write["merges"] == after[5] - before[5] > 0
    assert write["requests"] + write["merges"] == 1024
    assert (write["splits"], row_of(profile, "read")["merges"]) == (0, 0)


def test_a_bio_that_is_too_large_is_split(loop: Loop, direct: Fio) -> None:
    limit = Path("/sys/block", loop.block.name, "queue/max_sectors_kb")
    before = limit.read_text()
    limit.write_text("64")
    try:
        with open_watch(loop.block, 4096, "device") as watch:
            profile = watch_jobs(watch, direct(loop.node, rw="randwrite", bs="256k", number_ios=23))
    finally:
        limit.write_text(before)
    write = row_of(profile, "write")
    assert (write["requests"], write["splits"], write["merges"]) == (4 * 23, 3 * 23, 0)
