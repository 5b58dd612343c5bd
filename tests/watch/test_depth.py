"""Depth over time against known depths, and runs that begin in the middle of things."""

import time

import pytest
from loop_devices import Fio, Freezable, Loop, row_of, times_of, watch_jobs
from waiting import wait_until

from knobscope.watch import open_watch

pytestmark = pytest.mark.real

_HOLD_S = 0.5


def wait_for_depth(loop: Loop, depth: int) -> None:
    assert wait_until(lambda: loop.count_in_flight() == depth), f"{loop.count_in_flight()} in flight, expected {depth}"


@pytest.mark.long
def test_depth_is_known_where_requests_are_held(freezable: Freezable, direct: Fio) -> None:
    job = direct(freezable.loop.node, rw="randwrite", bs="4k", size="32m", number_ios=7, iodepth=7)
    with open_watch(freezable.loop.block, 4096, "device") as watch:
        watch.follow([job.pid])
        watch.begin()
        with freezable.frozen() as thaw:
            job.start()
            wait_for_depth(freezable.loop, 7)
            time.sleep(_HOLD_S)
            thaw()
        job.finish()
        profile = watch.end()
    times = times_of(profile)
    assert set(times) <= set(range(8))
    assert _HOLD_S <= times[7] / 1e9 < profile["duration_s"]
    assert sum(times.values()) == pytest.approx(profile["duration_s"] * 1e9, rel=0.002)
    assert times_of(profile, queue=0) == times  # a loop device has one hardware queue
    assert sum(row["requests"] for row in profile["io_latency"] if row["low_us"] >= _HOLD_S * 0.8e6) == 7
    held = [row for row in profile["series"] if row["requests"] == 0 and row["depth"] > 6.9]
    assert len(held) >= 3  # a stall shows, although no request begins or ends in it


@pytest.mark.parametrize(
    "attached", [True, pytest.param(False, marks=pytest.mark.long)], ids=["monitor-attached", "monitor-starts-later"]
)
def test_requests_from_before_the_run_are_distinguished(freezable: Freezable, direct: Fio, attached: bool) -> None:
    job = direct(freezable.loop.node, rw="randwrite", bs="4k", size="32m", number_ios=107, iodepth=7)
    with freezable.frozen() as thaw:
        early = open_watch(freezable.loop.block, 4096, "device") if attached else None
        job.start()
        wait_for_depth(freezable.loop, 7)
        with early or open_watch(freezable.loop.block, 4096, "device") as watch:
            watch.follow([job.pid])
            watch.begin()
            time.sleep(0.1)
            thaw()
            job.finish()
            profile = watch.end()
    assert profile["completions_without_start"] == 7
    assert row_of(profile, "write")["requests"] == 100
    assert sum(row["requests"] for row in profile["io_latency"]) == 100 - profile["starts_without_completion"]
    times = times_of(profile)
    assert set(times) <= set(range(8))  # never negative, which would show as a huge depth
    assert sum(times.values()) == pytest.approx(profile["duration_s"] * 1e9, rel=0.002)


@pytest.mark.long
def test_a_run_that_ends_early_counts_what_is_still_in_flight(freezable: Freezable, direct: Fio) -> None:
    job = direct(freezable.loop.node, rw="randwrite", bs="4k", size="32m", number_ios=5, iodepth=5)
    with open_watch(freezable.loop.block, 4096, "device") as watch:
        watch.follow([job.pid])
        watch.begin()
        with freezable.frozen() as thaw:
            job.start()
            wait_for_depth(freezable.loop, 5)
            profile = watch.end()
            thaw()
        job.finish()
        again = watch_jobs(watch, direct(freezable.loop.node, rw="randread", bs="4k", size="1m", number_ios=11))
    assert profile["starts_without_completion"] == 5
    assert row_of(profile, "write")["requests"] == 5
    assert again["completions_without_start"] == 0
    assert set(times_of(again)) <= {0, 1}
    assert row_of(again, "read")["requests"] == 11
