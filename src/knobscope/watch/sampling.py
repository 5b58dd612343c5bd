"""What threads wait for, by looking at them many times a second: where BPF is not permitted.

/proc knows of each thread how long it has computed and queued for a processor (`schedstat`). The rest of its time is
divided by the system calls that it was seen to sleep in (`syscall`, which root may read, and as a rule the same user).
How often and how much it wrote, by the pages that it made dirty and direct writes, the kernel sums up (`io`).
The same idea: 0x.tools' psn and xcapture (Poder), PostgreSQL's pg_wait_sampling.

Sleep that no signal ends is for a file, other sleep is for somebody: so a `read` of a file is told from one of a
socket. Who sleeps in `epoll_wait` without a socket in it waits for another thread, as PostgreSQL's sessions do for row
locks. Who waits for a lock while another thread flushes, in a call that does that or in a write that has to be durable,
counts as waiting for that flush, as in a group commit.
"""

import contextlib
import platform
import random
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypedDict

from knobscope.processes import list_tree
from knobscope.tables.waits import WaitStackRow
from knobscope.watch.profile import CountedThread, CountedWait

_PROC = Path("/proc")
_PAUSE_S = 0.02  # between two looks, on average
_LARGEST_SHARE = 0.05  # of a processor, that looking may take
_TREE_S = 0.2  # after which new processes are looked for
_REFRESH_S = 1.0  # after which times and names are read; of younger threads times are, at every look
_MAX_TITLE = 200
_NO_CALL = -1  # a page fault, or a thread of the kernel

#: Reason -> numbers of the calls, by machine (syscall_64.tbl and asm-generic/unistd.h of the kernel).
_CALLS: dict[str, dict[str, tuple[int, ...]]] = {
    "read": {"x86_64": (0, 17, 19, 295, 327), "aarch64": (63, 67, 65, 69, 286)},
    "write": {"x86_64": (1, 18, 20, 296, 328, 77, 285), "aarch64": (64, 68, 66, 70, 287, 46, 47)},
    "flush": {"x86_64": (26, 74, 75, 162, 277, 306), "aarch64": (227, 82, 83, 81, 84, 267)},
    "lock": {"x86_64": (65, 202, 220, 449, 454, 455), "aarch64": (192, 193, 98, 449, 454, 455)},
    "timer": {"x86_64": (35, 230), "aarch64": (101, 115)},
    "async": {"x86_64": (208, 333, 426), "aarch64": (4, 292, 426)},
    "epoll": {"x86_64": (232, 281, 441), "aarch64": (22, 441)},
    "network": {
        "x86_64": (7, 23, 34, 42, 43, 44, 45, 46, 47, 61, 128, 130, 247, 270, 271, 288, 299),
        "aarch64": (72, 73, 95, 133, 137, 202, 203, 206, 207, 211, 212, 242, 243, 260),
    },
}
#: Function of the kernel in which a thread sleeps -> reason, whatever the call.
_PLACES = {
    "submit_bio_wait": "flush",
    "jbd2_log_wait_commit": "flush",
    "folio_wait_bit": "write",  # in a call that flushes: the pages are being written
    "folio_wait_bit_common": "write",
    "balance_dirty_pages": "write",
}
#: Where a write that has to be durable sleeps, as with O_DSYNC; one into the page cache does not sleep there.
_DURABLE = ("submit_bio_wait", "jbd2_log_wait_commit", "folio_wait_bit", "folio_wait_bit_common")
#: Call -> argument, from 1 on, with the number of descriptors that it waits for; without any it only sleeps.
_COUNT_IN = {"x86_64": {7: 2, 271: 2, 23: 1, 270: 1}, "aarch64": {73: 2, 72: 1}}
_ON_FILES = ("read", "write", "flush")


class SampledWaits(TypedDict):
    """The tables of waits, as the probe of waits has them, and how many looks they rest on."""

    wait_threads: list[CountedThread]
    waits: list[CountedWait]
    wait_stacks: list[WaitStackRow]
    wait_samples: int


#: Thread waited for (0: none), links, reason.
_Key = tuple[int, int, str]


@dataclass(frozen=True)
class _Sleep:
    """Why a thread sleeps, in which function of the kernel, and whether its system call makes something durable."""

    reason: str
    place: str = ""
    is_flush: bool = False
    epoll: int | None = None


@dataclass
class _Thread:
    """A thread since it was first seen. At first and last: ns computed and queued, bytes and calls written."""

    pid: int
    began_s: float
    first: tuple[int, int]
    last: tuple[int, int]
    seen_s: float
    first_written: tuple[int, int]
    last_written: tuple[int, int]
    first_switches: int
    last_switches: int
    seen: Counter[_Key] = field(default_factory=Counter)
    places: Counter[tuple[str, str]] = field(default_factory=Counter)
    served: int = 0
    epoll: int | None = None
    was_idle: bool = False
    name: str = ""
    title: str = ""

    def read_times(self, tid: int) -> None:
        """Read for how long it has computed and queued up to now, if it is still there."""
        if times := _read_times(self.pid, tid):
            self.last, self.seen_s = times, time.monotonic()

    def read_written(self, tid: int) -> None:
        """Read how much it has written up to now, if it is still there."""
        self.last_written = _read_written(self.pid, tid) or self.last_written

    def read_switches(self, tid: int) -> None:
        """Read how often it has given up its processor up to now, if it is still there."""
        self.last_switches = max(self.last_switches, _read_switches(self.pid, tid))

    def read_names(self, tid: int) -> None:
        """Read its name and the command line of its process, which change after its birth, if they are still there."""
        self.name = _read(_PROC / str(self.pid) / "task" / str(tid) / "comm").strip() or self.name
        title = _read(_PROC / str(self.pid) / "cmdline").rstrip("\0").replace("\0", " ")
        self.title = title[:_MAX_TITLE] or self.title

    @property
    def wall_us(self) -> float:
        """For how long it was seen."""
        return 1e6 * (self.seen_s - self.began_s)

    @property
    def busy_us(self) -> tuple[float, float]:
        """For how long it computed and queued."""
        return (self.last[0] - self.first[0]) / 1e3, (self.last[1] - self.first[1]) / 1e3

    @property
    def slept_us(self) -> float:
        """For how long it did neither."""
        return max(self.wall_us - sum(self.busy_us), 0.0)


class WaitSampler:
    """Looks at the threads of process trees until it is stopped."""

    def __init__(self, roots: Sequence[int]) -> None:
        self._roots = list(roots)
        self._threads: dict[int, _Thread] = {}
        self._reasons = {
            number: reason for reason, numbers in _CALLS.items() for number in numbers.get(platform.machine(), ())
        }
        self._sockets: dict[tuple[int, int], bool] = {}
        self._samples = 0
        self._is_over = threading.Event()
        self._worker = ThreadPoolExecutor(1, "sampler")

    def start(self) -> None:
        """Begin to look."""
        self._looking = self._worker.submit(self._run)

    def stop(self) -> SampledWaits | None:
        """Return what was seen; None: no thread was seen asleep, or we may not know in which call, or for how long."""
        self._is_over.set()
        self._looking.result()
        self._worker.shutdown()
        self._refresh()
        rows = [(tid, thread) for tid, thread in sorted(self._threads.items()) if thread.seen_s > thread.began_s]
        if not any(thread.seen for _, thread in rows) or not any(thread.last[0] for _, thread in rows):
            return None
        return {
            "wait_threads": [_describe_thread(tid, thread) for tid, thread in rows],
            "waits": [row for tid, thread in rows for row in _divide(tid, thread)],
            "wait_stacks": [row for _, thread in rows for row in _list_places(thread)],
            "wait_samples": self._samples,
        }

    def _run(self) -> None:
        tree_s, refresh_s, pids = -_TREE_S, -_REFRESH_S, list[int]()
        pauses = random.Random()  # noqa: S311 - so that nothing which repeats itself is always met in the same place
        while not self._is_over.is_set():
            began, used_s = time.monotonic(), time.thread_time()
            if began - tree_s >= _TREE_S:
                tree_s, pids = began, list_tree(self._roots)
            if began - refresh_s >= _REFRESH_S:
                refresh_s = began
                self._refresh()
            self._look(pids, began)
            used_s = time.thread_time() - used_s  # of a processor: on a busy machine a look takes longer
            self._is_over.wait(max(pauses.uniform(0.5, 1.5) * _PAUSE_S, used_s / _LARGEST_SHARE))

    def _refresh(self) -> None:
        """Read times and names of each thread; what an epoll descriptor looks at is looked up again."""
        self._sockets.clear()
        for tid, thread in self._threads.items():
            thread.read_times(tid)
            thread.read_names(tid)
            thread.read_written(tid)
            thread.read_switches(tid)

    def _look(self, pids: Sequence[int], now_s: float) -> None:
        """Count what each thread sleeps in at this moment."""
        self._samples += 1
        sleeping: dict[int, _Sleep] = {}
        for pid, tid in _list_threads(pids):
            if tid not in self._threads:
                if (times := _read_times(pid, tid)) is None:
                    continue
                written = _read_written(pid, tid) or (0, 0)
                switches = _read_switches(pid, tid)
                self._threads[tid] = _Thread(pid, now_s, times, times, now_s, written, written, switches, switches)
                self._threads[tid].read_names(tid)
            found = self._find_reason(pid, tid)
            thread = self._threads[tid]
            if now_s - thread.began_s < _REFRESH_S:
                thread.read_times(tid)
            is_idle = found is not None and found.reason == "network"
            thread.served += thread.was_idle and not is_idle
            thread.was_idle = is_idle
            if found is not None:
                sleeping[tid] = found
                thread.epoll = found.epoll if found.epoll is not None else thread.epoll
        flushing = next((tid for tid, sleep in sleeping.items() if sleep.is_flush), 0)
        for tid, sleep in sleeping.items():
            key = (0, 0, sleep.reason)
            if sleep.reason == "lock" and flushing:
                key = (flushing, 1, sleeping[flushing].reason)
            self._threads[tid].seen[key] += 1
            self._threads[tid].places[sleep.reason, sleep.place] += 1

    def _find_reason(self, pid: int, tid: int) -> _Sleep | None:
        """Return why a thread sleeps; None: it runs, or we may not know."""
        directory = _PROC / str(pid) / "task" / str(tid)
        try:
            state = (directory / "stat").read_bytes().rpartition(b")")[2].split()[0]
            words = (directory / "syscall").read_text().split()
        except OSError:  # ended, or not ours
            return None
        if state not in (b"S", b"D") or words[:1] in ([], ["running"]):
            return None
        number, is_deep = int(words[0]), state == b"D"
        reason = self._reasons.get(number, "other")
        where = _COUNT_IN.get(platform.machine(), {}).get(number)
        if where is not None and not int(words[where], 16) & 0xFFFFFFFF:
            reason = "timer"
        if reason == "epoll":
            descriptor = int(words[1], 16)
            return _Sleep("network" if self._has_socket(pid, descriptor) else "lock", epoll=descriptor)
        if not is_deep:
            return _Sleep("network" if reason in _ON_FILES else reason)
        if number == _NO_CALL:
            return _Sleep("fault")
        place = _read(directory / "wchan").partition(".")[0]
        exact = reason if reason == "read" else _PLACES.get(place, reason)
        is_flush = reason == "flush" or (reason == "write" and place in _DURABLE)
        return _Sleep(exact, "" if place == "0" else place, is_flush)  # "0": not told

    def _has_socket(self, pid: int, descriptor: int) -> bool:
        """Whether an epoll descriptor looks at a socket; True where that cannot be seen."""
        key = pid, descriptor
        if key not in self._sockets:
            lines = _read(_PROC / str(pid) / "fdinfo" / str(descriptor)).splitlines()
            targets = [line.split()[1] for line in lines if line.startswith("tfd:")]
            links = [_read_link(_PROC / str(pid) / "fd" / target) for target in targets]
            if not links:  # it has been closed since, or is not ours to see
                return True
            self._sockets[key] = any(link is None or link.startswith("socket:") for link in links)
        return self._sockets[key]


def _list_threads(pids: Sequence[int]) -> Iterator[tuple[int, int]]:
    for pid in pids:
        with contextlib.suppress(OSError):  # ended
            for entry in (_PROC / str(pid) / "task").iterdir():
                yield pid, int(entry.name)


def _describe_thread(tid: int, thread: _Thread) -> CountedThread:
    return {
        "tid": tid,
        "pid": thread.pid,
        "name": thread.name,
        "title": thread.title,
        "wall_us": thread.wall_us,
        "is_followed": True,
        "served": thread.served,
        "epoll": thread.epoll,
        "written_bytes": thread.last_written[0] - thread.first_written[0],
        "write_calls": thread.last_written[1] - thread.first_written[1],
        "switches": thread.last_switches - thread.first_switches,
    }


def _divide(tid: int, thread: _Thread) -> Iterator[CountedWait]:
    """Yield the parts of a thread's time: computed and queued as the kernel says, the rest by what was seen."""
    for reason, time_us in zip(("cpu", "runnable"), thread.busy_us, strict=True):
        yield _make_row(tid, (0, 0, reason), 0, time_us)
    for key, count in thread.seen.items():
        yield _make_row(tid, key, count, thread.slept_us * count / thread.seen.total())


def _make_row(tid: int, key: _Key, waits: int, time_us: float) -> CountedWait:
    via, links, reason = key
    return {
        "tid": tid,
        "via": via,
        "links": links,
        "reason": reason,
        "waits": waits,
        "time_us": time_us,
        "longest_us": 0.0,
    }


def _list_places(thread: _Thread) -> Iterator[WaitStackRow]:
    for (reason, place), count in thread.places.items():
        if place:
            time_us = thread.slept_us * count / thread.seen.total()
            yield {"reason": reason, "syscall": None, "stack": place, "waits": count, "time_us": time_us}


def _read_times(pid: int, tid: int) -> tuple[int, int] | None:
    """Return for how long a thread has computed and queued, in ns; None: it has ended."""
    words = _read(_PROC / str(pid) / "task" / str(tid) / "schedstat").split()
    return (int(words[0]), int(words[1])) if words else None


def _read_written(pid: int, tid: int) -> tuple[int, int] | None:
    """Return the bytes that a thread made the kernel write, and its calls; None: it has ended, or we may not know."""
    lines = dict(line.split(": ") for line in _read(_PROC / str(pid) / "task" / str(tid) / "io").splitlines())
    return (int(lines["write_bytes"]), int(lines["syscw"])) if "write_bytes" in lines else None


def _read_switches(pid: int, tid: int) -> int:
    """Return how often a thread has slept; 0: it has ended."""
    lines = _read(_PROC / str(pid) / "task" / str(tid) / "status").splitlines()
    return next((int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt_switches:")), 0)


def _read(path: Path) -> str:
    """Return a file's text; nothing where what it is about has ended, or is not ours to see."""
    try:
        return path.read_text(errors="replace")
    except OSError:
        return ""


def _read_link(path: Path) -> str | None:
    try:
        return str(path.readlink())
    except OSError:
        return None
