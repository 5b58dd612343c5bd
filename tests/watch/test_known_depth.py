"""Depth against two truths: requests that are held, and Little's law with the kernel's own sum of latencies."""

import time
from collections.abc import Iterator

import pytest
from loop_devices import Fio, Freezable, Loop, row_of, times_of, watch_jobs
from waiting import wait_until

from knobscope.watch import Watch, open_watch

pytestmark = [pytest.mark.real, pytest.mark.long]

_HOLD_S = 0.3
_MAX_ATTEMPTS = 6
SHAPES = [(1, 1), (4, 1), (32, 1), (1, 4), (4, 4), (32, 3)]  # iodepth, numjobs


@pytest.fixture(scope="module")
def held(freezable: Freezable) -> Iterator[Watch]:
    with open_watch(freezable.loop.block, 4096, "device") as opened:
        yield opened


@pytest.fixture(scope="module")
def watch(loop: Loop) -> Iterator[Watch]:
    with open_watch(loop.block, 4096, "device") as opened:
        yield opened


@pytest.mark.parametrize(("iodepth", "numjobs"), SHAPES)
def test_held_requests_are_the_depth(
    held: Watch, freezable: Freezable, direct: Fio, iodepth: int, numjobs: int
) -> None:
    depth = iodepth * numjobs
    options = {"rw": "randwrite", "bs": "4k", "size": "32m", "number_ios": iodepth, "iodepth": iodepth}
    job = direct(freezable.loop.node, numjobs=numjobs, **options)
    held.follow([job.pid])
    held.begin()
    with freezable.frozen() as thaw:
        job.start()
        assert wait_until(lambda: freezable.loop.count_in_flight() == depth)
        time.sleep(_HOLD_S)
        thaw()
    job.finish()
    times = times_of(held.end())
    assert max(times) == depth
    assert times[depth] >= _HOLD_S * 1e9


def sum_ms(histogram: list[dict[str, float]]) -> float:
    """All the time in a histogram, taking each request for one in the middle of its bucket."""
    return sum(row["requests"] * (row["low_us"] + row["high_us"]) / 2e3 for row in histogram)


@pytest.mark.parametrize(("iodepth", "numjobs"), SHAPES)
@pytest.mark.parametrize("pattern", ["randread", "randwrite"])
def test_depth_is_rate_times_latency(
    watch: Watch, loop: Loop, direct: Fio, pattern: str, iodepth: int, numjobs: int
) -> None:
    """Little's law, with the latencies of the same run and with the kernel's own sum of latencies."""
    column = {"randread": 3, "randwrite": 7}[pattern]
    options = {"rw": pattern, "bs": "64k", "size": "128m", "runtime": "300ms", "time_based": 1}
    for _ in range(_MAX_ATTEMPTS):
        job = direct(loop.node, iodepth=iodepth, numjobs=numjobs, **options)
        before = loop.read_stat()
        profile = watch_jobs(watch, job)
        kernel_ms = loop.read_stat()[column] - before[column]
        if not profile["starts_without_completion"]:
            break  # else BPF did not see some completions (docs/evidence/monitor.md), and their latency is not known
    else:
        pytest.skip("this machine hides completions from BPF programs all the time")
    times = times_of(profile)
    requests = row_of(profile, pattern.removeprefix("rand"))["requests"]
    rate, latency_s = requests / profile["duration_s"], sum_ms(profile["io_latency"]) / 1e3 / requests
    mean_depth = sum(depth * time_ns for depth, time_ns in times.items()) / sum(times.values())
    assert mean_depth == pytest.approx(rate * latency_s, rel=0.05)
    # The kernel's latency has the wait before issue in it, and the end of the request until who asked is woken up: that
    # takes some 20 us each, which is a fifth of the shortest requests here.
    in_device_ms = kernel_ms - sum_ms(profile["queue_wait"])
    assert 0.8 * in_device_ms - 0.03 * requests <= mean_depth * profile["duration_s"] * 1e3 <= 1.05 * in_device_ms
    assert sum(times.values()) == pytest.approx(profile["duration_s"] * 1e9, rel=1e-3)
    assert max(times) <= iodepth * numjobs


def test_runs_begin_and_end_in_the_middle_of_the_load(watch: Watch, loop: Loop, direct: Fio) -> None:
    """Requests in flight at a border belong to no run, and depth stays between none and all of them."""
    job = direct(loop.node, rw="randread", bs="4k", size="128m", runtime="2s", time_based=1, iodepth=16)
    job.start()
    assert wait_until(lambda: loop.count_in_flight() > 0)
    profiles = []
    for _ in range(5):
        watch.follow([job.pid])
        watch.begin()
        time.sleep(0.1)
        profiles.append(watch.end())
    job.finish()
    hidden = sum(profile["starts_without_completion"] for profile in profiles)
    for profile in profiles:
        times = times_of(profile)
        assert sum(times.values()) == pytest.approx(profile["duration_s"] * 1e9, rel=0.01)
        # A completion hidden from BPF raises depth until its tag is used again, also in the runs after it.
        assert max(times) <= 16 + hidden + 4  # those hidden before the first run are published nowhere
        assert profile["completions_without_start"] <= 16
        assert row_of(profile, "read")["requests"] > 16
    assert sum(row_of(profile, "read")["requests"] for profile in profiles) < job.read("read")["total_ios"]
