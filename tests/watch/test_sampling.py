"""Without BPF, what threads wait for is seen by looking at them: each thread of a real program does one thing."""

import json
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from knobscope.watch.sampling import SampledWaits, WaitSampler

pytestmark = pytest.mark.real

#: By step: reason and links -> share of the time slept; and all rows.
Seen = tuple[dict[str, dict[tuple[str, int], float]], SampledWaits]

#: A thread for each step that is named.
PROGRAM = """
import json, os, select, socket, sys, threading, time
steps, file, tids = sys.argv[1].split(), sys.argv[2], {}
held = threading.Lock()
held.acquire()
reader, writer = os.pipe()
ours, theirs = socket.socketpair()
def flush():
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY)
    while True:
        os.pwrite(descriptor, os.urandom(4096), 0)
        os.fdatasync(descriptor)
def durable():
    descriptor = os.open(file, os.O_CREAT | os.O_WRONLY | os.O_DSYNC)
    while True:
        os.pwrite(descriptor, os.urandom(4096), 0)
def epoll(descriptor):
    waiting = select.epoll()
    waiting.register(descriptor, select.EPOLLIN)
    waiting.poll()
def compute():
    while True:
        pass
work = {
    "flush": flush, "durable": durable, "lock": held.acquire,
    "pipe": lambda: os.read(reader, 1), "timer": lambda: time.sleep(600),
    "no-descriptor": lambda: select.select([], [], [], 600),
    "epoll-socket": lambda: epoll(ours.fileno()), "epoll-pipe": lambda: epoll(reader), "cpu": compute,
}
def begin(step):
    tids[step] = threading.get_native_id()
    work[step]()
for step in steps:
    threading.Thread(target=begin, args=(step,), daemon=True).start()
while len(tids) < len(steps):
    time.sleep(.01)
print(json.dumps(tids), flush=True)
sys.stdin.read()
"""


def look_at(process: "subprocess.Popen[bytes]") -> SampledWaits:
    """Look at a program for some seconds, and end it."""
    sampler = WaitSampler([process.pid])
    sampler.start()
    time.sleep(3)
    seen = sampler.stop()
    process.kill()
    assert seen is not None
    return seen


@pytest.fixture
def look(tmp_path: Path) -> Callable[..., Seen]:
    """Return what looks at a program with a thread for each of some steps."""

    def run(*steps: str) -> Seen:
        command = [sys.executable, "-c", PROGRAM, " ".join(steps), str(tmp_path / "file")]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            names = {tid: step for step, tid in json.loads(process.stdout.readline()).items()}
            seen = look_at(process)
        shares: dict[str, dict[tuple[str, int], float]] = {step: {} for step in steps}
        for row in seen["waits"]:
            if row["tid"] in names and row["reason"] not in ("cpu", "runnable"):
                shares[names[row["tid"]]][row["reason"], row["links"]] = row["time_us"]
        for parts in shares.values():
            total = sum(parts.values()) or 1.0
            parts.update({key: time_us / total for key, time_us in parts.items()})
        return shares, seen

    return run


def test_each_thread_is_seen_to_wait_for_what_it_does(look: Callable[..., Seen]) -> None:
    shares, seen = look("lock", "pipe", "timer", "no-descriptor", "epoll-socket", "epoll-pipe", "cpu")
    assert shares["lock"] == {("lock", 0): 1.0}
    assert shares["pipe"] == {("network", 0): 1.0}
    assert shares["timer"] == shares["no-descriptor"] == {("timer", 0): 1.0}
    assert shares["epoll-socket"] == {("network", 0): 1.0}
    assert shares["epoll-pipe"] == {("lock", 0): 1.0}  # nobody outside the program can end that
    assert seen["wait_samples"] > 1
    for thread in seen["wait_threads"]:
        parts = [row["time_us"] for row in seen["waits"] if row["tid"] == thread["tid"]]
        assert sum(parts) == pytest.approx(thread["wall_us"], rel=0.1)


@pytest.mark.parametrize("step", ["flush", "durable"])
def test_who_waits_for_a_lock_while_another_thread_flushes_waits_for_that(look: Callable[..., Seen], step: str) -> None:
    shares, seen = look(step, "lock")
    durable = sum(share for (reason, _), share in shares[step].items() if reason in ("flush", "write"))
    assert durable > 0.5
    assert 0 < sum(share for (_, links), share in shares["lock"].items() if links) < 1 + 1e-9
    assert {row["reason"] for row in seen["wait_stacks"]} <= {"flush", "write"}
    written = sorted(row.get("written_bytes", 0) for row in seen["wait_threads"])
    assert written[-1] > 0, "the kernel knows who wrote"
    assert written[-2] == 0, "and that nobody else did"


def test_a_session_of_a_fraction_of_a_second_is_seen_with_its_name() -> None:
    """As a server has that starts a process for each connection."""
    program = "import subprocess\nwhile True:\n    subprocess.run(['sleep', '0.6'])\n"
    with subprocess.Popen([sys.executable, "-c", program]) as process:
        seen = look_at(process)
    short = {row["tid"]: row["title"] for row in seen["wait_threads"] if row["name"] == "sleep"}
    assert len(short) >= 2
    assert set(short.values()) == {"sleep 0.6"}
    assert {row["reason"] for row in seen["waits"] if row["tid"] in short and row["waits"]} == {"timer"}


def test_of_a_process_that_has_ended_nothing_is_seen() -> None:
    with subprocess.Popen(["true"]) as process:
        process.wait()
        sampler = WaitSampler([process.pid])
        sampler.start()
        assert sampler.stop() is None
