"""Where the time of threads goes, against a program whose threads each wait for one thing only."""

import shlex
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from loop_devices import Gated, Loop, watch_jobs

from knobscope.watch import Profile, Watch, open_watch

pytestmark = pytest.mark.real

_SOURCE = Path(__file__).parents[2] / "benchmarks" / "waits.c"
_FILE_MIB = 64
_OWN = ("cpu", "runnable", "preempted")
#: Each append waits for a commit of the journal; a pause after it, so that the journal's thread sleeps.
_APPEND = """
import os, sys, time
file = os.open(sys.argv[1], os.O_CREAT | os.O_WRONLY | os.O_APPEND)
for _ in range(300):
    os.write(file, bytes(4096))
    os.fdatasync(file)
    time.sleep(0.002)
"""
#: Threads 0 and 1 wait in one descriptor, 2 in another one, 3 in none.
_EPOLL = """
import ctypes, select, threading, time
shared, own = select.epoll(), select.epoll()
def wait(number, epoll):
    ctypes.CDLL(None).prctl(15, b"waits-%d" % number)
    for _ in range(20):
        epoll.poll(0.02) if epoll else time.sleep(0.02)
threads = [threading.Thread(target=wait, args=pair) for pair in enumerate((shared, shared, own, None))]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
"""
_PAUSE_US = 100_000  # each thread sleeps so long at its end


@dataclass
class Thread:
    """What the program says of a thread, and the time that the probe found, by (reason, links)."""

    step: str
    computed_us: float
    queued_us: float
    wall_us: float
    times: dict[tuple[str, int], float]

    @property
    def blocked_us(self) -> float:
        return self.wall_us - sum(self.times.get((name, 0), 0.0) for name in _OWN) - _PAUSE_US

    def sum(self, *reasons: str, links: tuple[int, ...] = (0, 1, 2, 3, 4)) -> float:
        return sum(time for (reason, link), time in self.times.items() if reason in reasons and link in links)


Run = Callable[[str], list[Thread]]


@pytest.fixture(scope="module")
def binary(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("waits") / "waits"
    subprocess.run(["cc", "-O2", "-Wall", "-Werror", "-o", str(path), str(_SOURCE), "-lpthread"], check=True)
    return path


@pytest.fixture(scope="module")
def watch(mounted: Loop) -> Iterator[Watch]:
    with open_watch(mounted.block, 4096, "device", probes=["waits"]) as opened:
        assert opened.monitor == "bpf", opened.reason
        assert not opened.missing_probes
        yield opened


@pytest.fixture
def profile(mounted: Loop, watch: Watch, binary: Path, tmp_path: Path) -> Callable[[str], tuple[Profile, str]]:
    """Run the program with these steps for a second; return its profile, and what it said."""
    assert mounted.mount is not None
    file = mounted.mount / "waits"
    if not file.exists():
        file.write_bytes(bytes(_FILE_MIB << 20))

    def follow(steps: str) -> tuple[Profile, str]:
        output = tmp_path / "output"
        command = f"exec {shlex.quote(str(binary))} 1 {shlex.quote(str(file))} {steps} > {shlex.quote(str(output))}"
        return watch_jobs(watch, Gated(["sh", "-c", command])), output.read_text()

    return follow


@pytest.fixture
def run(profile: Callable[[str], tuple[Profile, str]]) -> Run:
    """Run the program with these steps for a second; return its threads."""
    return lambda steps: list_threads(*profile(steps))


def list_threads(profile: Profile, output: str) -> list[Thread]:
    lost: Any = dict(profile["lost_waits"])  # type: ignore[typeddict-item]
    lost.pop("missed_events")
    assert not any(lost.values()), lost
    said = {int(words[0]): words[1:] for words in map(str.split, output.splitlines())}
    threads = []
    for row in profile["wait_threads"]:  # type: ignore[typeddict-item]
        if row["tid"] not in said:
            continue
        times: dict[tuple[str, int], float] = {}
        for part in (part for part in profile["waits"] if part["tid"] == row["tid"]):  # type: ignore[typeddict-item]
            key = part["reason"], part["links"]
            times[key] = times.get(key, 0.0) + part["time_us"]
        step, _, _, computed, queued = said[row["tid"]]
        threads.append(Thread(step, int(computed) / 1e3, int(queued) / 1e3, row["wall_us"], times))
    assert len(threads) == len(said) > 0
    return threads


def test_all_time_is_accounted_for(run: Run) -> None:
    threads = run("cpu:1 fsync:1 read:1 lock:2 sleep:1 group:2")
    for thread in threads:
        assert sum(thread.times.values()) == pytest.approx(thread.wall_us, rel=0.01)
        busy = sum(thread.times.get((name, 0), 0.0) for name in _OWN)
        known = thread.computed_us + thread.queued_us  # which of both, the two accounts tell by different moments
        assert busy == pytest.approx(known, rel=0.2, abs=60_000), thread.step


@pytest.mark.parametrize(
    ("step", "reasons"),
    [
        ("sleep", ["timer"]),
        ("doze", ["timer"]),
        ("read", ["read"]),
        ("write", ["write"]),
        ("writeback", ["write"]),
        ("fsync", ["flush", "write", "journal"]),
        ("fault", ["fault"]),
        ("aio", ["read"]),
        ("uring", ["read"]),
    ],
)
def test_a_wait_has_the_reason_of_its_step(run: Run, step: str, reasons: list[str]) -> None:
    (thread,) = (thread for thread in run(f"{step}:1") if thread.step == step)
    through = thread.sum(*_OWN, links=(1, 2, 3, 4))  # of the journal's thread
    assert thread.sum(*reasons) - (_PAUSE_US if "timer" in reasons else 0) + through >= 0.9 * thread.blocked_us, (
        thread.times
    )
    assert thread.sum(*reasons) >= 0.5 * thread.blocked_us


def test_few_stacks_stand_for_all_waits_of_their_kind(profile: Callable[[str], tuple[Profile, str]]) -> None:
    waited, output = profile("fsync:1")
    (thread,) = (thread for thread in list_threads(waited, output) if thread.step == "fsync")
    stacks = [row for row in waited["wait_stacks"] if row["syscall"] == "fdatasync"]
    assert {"flush", "write"} & {row["reason"] for row in stacks}
    for reason in {row["reason"] for row in stacks}:
        total = sum(row["time_us"] for row in stacks if row["reason"] == reason)
        assert total >= 0.95 * thread.sum(reason, links=(0,)) - 2_000  # and what others waited through this thread


def test_the_journals_thread_waits_for_its_requests_and_for_work(mounted: Loop, watch: Watch) -> None:
    assert mounted.mount is not None
    program = Gated([sys.executable, "-c", _APPEND, str(mounted.mount / "appended")])
    watch.follow([program.pid])
    watch.begin()
    program.run()
    profile = watch.end()
    journals = {row["tid"] for row in profile["wait_threads"] if not row["is_followed"]}  # type: ignore[typeddict-item]
    times: dict[str, float] = defaultdict(float)
    for row in profile["waits"]:  # type: ignore[typeddict-item]
        if row["tid"] in journals and not row["links"]:
            times[row["reason"]] += row["time_us"]
    assert times["write"] > 0
    assert times["journal"] > 0  # its thread asleep, most stacks of which are not taken
    assert times["other"] <= 0.01 * sum(times.values()), times


def test_threads_that_sleep_all_the_time_have_the_reason_of_their_call(watch: Watch) -> None:
    sleepers = [subprocess.Popen(["sleep", "600"]) for _ in range(20)]
    try:
        time.sleep(0.2)  # until all of them sleep
        watch.follow([sleeper.pid for sleeper in sleepers])
        watch.begin()
        time.sleep(0.2)
        profile = watch.end()
    finally:
        for sleeper in sleepers:
            sleeper.kill()
            sleeper.wait()
    walls = {row["tid"]: row["wall_us"] for row in profile["wait_threads"]}  # type: ignore[typeddict-item]
    times = {row["tid"]: row["time_us"] for row in profile["waits"] if row["reason"] == "timer"}  # type: ignore[typeddict-item]
    assert set(walls) == set(times) == {sleeper.pid for sleeper in sleepers}
    assert all(times[tid] == pytest.approx(wall, rel=0.01) for tid, wall in walls.items())


def test_threads_that_wait_in_one_epoll_descriptor_tell_its_number(watch: Watch) -> None:
    profile = watch_jobs(watch, Gated([sys.executable, "-c", _EPOLL]))
    threads = [row for row in profile["wait_threads"] if row["name"].startswith("waits-")]  # type: ignore[typeddict-item]
    found = {row["name"]: row["epoll"] for row in threads}
    assert found["waits-0"] == found["waits-1"] is not None
    assert found["waits-2"] not in (found["waits-0"], None)
    assert next(row for row in profile["wait_threads"] if row["name"] == "waits-3")["epoll"] is None  # type: ignore[typeddict-item]


def test_who_waits_for_a_sleeper_waits_for_its_timer(run: Run) -> None:
    threads = run("lock:2")
    assert any(thread.sum("timer", links=(1, 2, 3, 4)) > 0 for thread in threads)  # one may get the lock every time
    for thread in threads:
        assert thread.sum("lock") <= 0.1 * thread.blocked_us, thread.times


def test_who_waits_for_an_echo_waits_for_what_the_echo_did(run: Run) -> None:
    (thread,) = run("pipe:1")
    assert thread.sum("timer", links=(1,)) >= 0.5 * thread.blocked_us, thread.times
    assert thread.sum("network") <= 0.1 * thread.blocked_us


def test_a_wait_for_a_thread_whose_past_is_not_kept_is_a_wait_for_a_lock(run: Run) -> None:
    (thread,) = run("naps:1")
    assert thread.sum("network") <= 0.1 * thread.blocked_us, thread.times
    assert thread.sum("lock", "timer", *_OWN, links=(0, 1)) >= 0.9 * thread.blocked_us
    assert thread.sum("lock", links=(0,)) > 0


def test_a_commit_waits_for_the_flush_of_its_leader(run: Run) -> None:
    threads = run("group:4")
    through = sum(thread.sum("flush", "write", "journal", links=(1, 2, 3, 4)) for thread in threads)
    alone = sum(thread.sum("flush", "write", "journal", links=(0,)) for thread in threads)
    blocked = sum(thread.blocked_us for thread in threads)
    assert through > alone > 0
    assert sum(thread.sum("lock") for thread in threads) <= 0.25 * blocked


def test_followers_of_a_lock_that_is_held_over_a_flush(run: Run) -> None:
    followers = [thread for thread in run("leader:1 follower:2") if thread.step == "follower"]
    for thread in followers:
        waited = thread.sum("flush", "write", "journal", links=(1, 2, 3, 4))
        assert waited > thread.sum("lock"), thread.times
