"""Waits of the followed processes: where each thread's time goes, and through whom."""

from __future__ import annotations

import platform
import re
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calls import CALLS, define_registers, list_registers
from file_of import FILE_HEAD, FILE_MEMBERS, make_file_row
from followed import FOLLOWED_MEMBERS, FOLLOWED_TRACEPOINTS, Group, list_processes, list_threads
from kernel import Kernel, Member, Needs, UnavailableError, read_kernel
from probe import Probe, Selection
from program import Program, count_missed
from typed import TypedProgram
from wait_calls import FOR_TIME, WAIT_CALLS
from wait_reasons import Symbols, name_reason

Row = dict[str, Any]

_SOURCE = Path(__file__).resolve().with_name("waits.bpf.c")
_HANDLERS = {
    "sched_switch": "on_switch",
    "sched_waking": "on_waking",
    "sched_wakeup_new": "on_born",
    "block_rq_complete": "on_complete",
}
_CALLABLE = ("on_sleeper",)
_LOSSES = ("threads", "times", "files", "stacks")  # as the enums in the program
_ON_CPU, _RUNNABLE, _PREEMPTED, _BLOCKED, _ENDED = range(5)
_OWN = ("cpu", "runnable", "preempted")
_NO_CALL, _SLEEP, _NO_STACK_OF_JOURNAL, _NOT_COUNTING = 0xFFFF, 1023, -2, (1 << 64) - 1
_MAX_STACKS, _MAX_TITLE = 50, 200
_NAMESPACE = "pid:[4026531836]"  # PROC_PID_INIT_INO: what programs know threads by are its numbers
_NAMES_EVERY = 10  # samples


class WaitProbe(Probe):
    """Accounts for the time of the threads of one run at a time."""

    def __init__(self, selection: Selection) -> None:
        del selection  # a thread's time is whole, or nothing adds up
        self._machine = platform.machine()
        kernel = _choose_kernel(read_kernel(_state_needs(self._machine)))
        kernel = replace(kernel, prelude=kernel.prelude + define_registers(self._machine))
        self.limits: list[str] = []
        try:
            self._program: Program = TypedProgram(_SOURCE, kernel, _HANDLERS, {}, callable_functions=_CALLABLE)
        except UnavailableError:
            self._program = Program(_SOURCE, kernel, _HANDLERS, {}, callable_functions=_CALLABLE)
        self._kinds = self._fill_calls()
        self._names = {
            call.numbers[self._machine]: name for name, call in CALLS.items() if self._machine in call.numbers
        }
        self._names |= {
            call.numbers[self._machine]: name for name, call in WAIT_CALLS.items() if self._machine in call.numbers
        } | {_SLEEP: "sleep"}
        self._symbols = Symbols()
        self._groups: list[Group] = []
        self._titles: dict[int, str] = {}
        self._comms: dict[int, str] = {}
        self._samples = self._epoch = self._began_ns = self._ended_ns = 0

    def follow(self, groups: Sequence[Group]) -> None:
        """Follow the threads of these cgroups, and of those below, from now on."""
        if not set(self._groups) <= set(groups) or not self._groups:
            self._clear("threads", "buckets")
        self._groups = list(groups)
        self._program.follow(groups)
        self._configure(is_following=bool(groups))

    def start(self, groups: Sequence[Group]) -> None:
        """Clear all sums and account for these cgroups, and those below, from now on."""
        if set(groups) != set(self._groups):
            self.follow(groups)
        self._clear()
        self._titles, self._comms, self._samples = {}, {}, 0
        self._program.start_costs()
        self._epoch += 1
        self._began_ns = time.monotonic_ns()
        self._configure(is_following=bool(groups), is_counting=True)
        self._add_sleepers()
        self._read_names(is_due=True)

    def sample(self) -> None:
        """Read the names of threads and titles of processes, which tell what these do and are gone when they end."""
        self._samples += 1
        self._read_names(is_due=self._samples % _NAMES_EVERY == 0)

    def pause(self) -> None:
        """Account for nothing any more."""
        self._configure(is_following=False)
        self._ended_ns = time.monotonic_ns()

    def stop(self) -> Row:
        """Return where the time of the run's threads went."""
        end_ns = self._ended_ns
        costs = self._program.list_costs()
        self._read_names(is_due=True)
        self._program.follow(())
        self._groups = []
        lost = {name: sum(self._program.get("losses", i)) for i, name in enumerate(_LOSSES)}
        reasons = _Reasons(self._program, self._symbols, self._names, self._kinds)
        sums: _Sums = defaultdict(lambda: defaultdict(_Sum))
        found = [(int(thread.id), thread) for _, thread in self._program["threads"].items() if thread.id]
        for tid, key, own in self._list_times(found):
            reason = reasons.find(key.what, own.waits, own.time)
            sums[tid][key.via, key.links, reason].add(own.waits, own.time, own.longest)
        threads = [self._make_thread_row(tid, thread, end_ns, sums, reasons) for tid, thread in found]
        return {
            "wait_threads": sorted((row for row in threads if row), key=lambda row: int(row["tid"])),
            "waits": [
                {"tid": tid, "via": via, "links": links, "reason": reason, **total.describe()}
                for tid, parts in sorted(sums.items())
                for (via, links, reason), total in sorted(parts.items())
            ],
            "wait_files": self._list_files(reasons),
            "wait_stacks": reasons.list_stacks(),
            "lost_waits": lost | {"missed_events": count_missed(costs)},
            "wait_programs": costs,
        }

    def _clear(self, *more: str) -> None:
        self._program.clear("times", "file_times", "files", "losses", *more)  # threads that sleep know their stacks

    def _configure(self, *, is_following: bool, is_counting: bool = False) -> None:
        began = self._began_ns if is_counting else _NOT_COUNTING
        self._program.put("config", 0, self._program["config"].Leaf(is_following, began, self._epoch))

    def _fill_calls(self) -> dict[int, int]:
        kinds = {}
        for call in WAIT_CALLS.values():
            number = call.numbers.get(self._machine)
            if number is not None:
                kinds[number] = call.kind
                leaf = self._program["calls"].Leaf(
                    call.kind, call.is_signal, call.has_timeout, call.is_plain, call.count_in, call.is_epoll
                )
                self._program.put("calls", number, leaf)
        self._program.put("calls", _SLEEP, self._program["calls"].Leaf(kind=FOR_TIME))
        return {**kinds, _SLEEP: FOR_TIME}

    def _add_sleepers(self) -> None:
        """Add the threads that have not moved since they are followed, with what they sleep in now."""
        counts = {call.numbers.get(self._machine): call.count_in for call in WAIT_CALLS.values()}
        for tid in list_threads(self._groups):
            state = _read_state(tid)
            if state is None:
                continue
            is_running, process, call, arguments = state
            if (place := counts.get(call)) and not arguments[place - 1] & 0xFFFFFFFF:
                call = _SLEEP
            self._program.call("on_sleeper", tid, process, call, is_running)

    def _read_names(self, *, is_due: bool) -> None:
        """Read those that are not known yet, or all: a thread is named only after it was born, and again later."""
        for tid in list_threads(self._groups) if is_due else ():
            if name := _read(Path("/proc", str(tid), "comm")).strip():
                self._comms[tid] = name
        for pid in list_processes(self._groups):
            if is_due or pid not in self._titles:
                title = _read(Path("/proc", str(pid), "cmdline")).rstrip("\0").replace("\0", " ")
                if title:
                    self._titles[pid] = title[:_MAX_TITLE]

    def _list_times(self, threads: Sequence[tuple[int, Any]]) -> Iterator[tuple[int, Any, Any]]:
        """Yield thread, kind of time and sum: those that were put away, and those that threads keep themselves."""
        for key, own in self._program["times"].items():
            yield key.thread, key, own
        for tid, thread in threads:
            for recent in thread.recent if thread.epoch == self._epoch else ():
                if recent.sum.waits:
                    yield tid, recent, recent.sum

    def _make_thread_row(self, tid: int, thread: Any, end_ns: int, sums: _Sums, reasons: _Reasons) -> Row | None:
        """Return a thread's row, and add to the sums what is in it alone; None when it ended before the window."""
        end = min(thread.ended or end_ns, end_ns)
        if end <= self._began_ns:
            return None
        is_current = thread.epoch == self._epoch
        for i, name in enumerate(_OWN):
            if is_current and thread.own[i].waits:
                sums[tid][0, 0, name].add(thread.own[i].waits, thread.own[i].time, thread.own[i].longest)
        if thread.state != _ENDED:
            tail = thread.tail
            if tail.start and thread.since > max(tail.start, self._began_ns):
                ended_ns = thread.since - max(tail.start, self._began_ns)
                sums[tid][tail.via, tail.links, reasons.find(tail.what, 1, ended_ns)].add(1, ended_ns, ended_ns)
            ongoing_ns = max(end_ns - max(thread.since, self._began_ns), 0)
            reason = reasons.find(thread.what, 1, ongoing_ns) if thread.state == _BLOCKED else _OWN[thread.state]
            sums[tid][0, 0, reason].add(1, ongoing_ns, ongoing_ns)
        wall = end - max(thread.born, self._began_ns)
        counted_ns = sum(total.time for total in sums[tid].values())
        if wall > counted_ns:
            sums[tid][0, 0, "unknown"].add(0, wall - counted_ns, 0)
        return {
            "tid": tid,
            "pid": thread.process,
            "name": self._comms.get(tid) or thread.name.decode(errors="replace"),
            "title": self._titles.get(thread.process, ""),
            "wall_us": wall / 1e3,
            "is_followed": not thread.is_helper,
            "served": thread.served if is_current else 0,
            "epoll": thread.epoll - 1 if is_current and thread.epoll else None,
        }

    def _list_files(self, reasons: _Reasons) -> list[Row]:
        sums: dict[tuple[Any, str], _Sum] = defaultdict(_Sum)
        about: dict[Any, Row] = {}
        names = {_identify(key): leaf for key, leaf in self._program["files"].items()}
        for key, own in self._program["file_times"].items():
            file = _identify(key.file)
            if file in names:
                about[file] = make_file_row(key.file, names[file])
                sums[file, reasons.find(key.what)].add(own.waits, own.time, own.longest)
        rows = [{**about[file], "reason": reason, **total.describe()} for (file, reason), total in sums.items()]
        return sorted(rows, key=lambda row: -float(row["time_us"]))


class _Sum:
    """Of waits of one kind; times in ns."""

    def __init__(self) -> None:
        self.waits = self.time = self.longest = 0

    def add(self, waits: int, time_ns: int, longest: int) -> None:
        self.waits += waits
        self.time += time_ns
        self.longest = max(self.longest, longest)

    def describe(self) -> Row:
        return {"waits": self.waits, "time_us": self.time / 1e3, "longest_us": self.longest / 1e3}


_Sums = dict[int, dict[tuple[int, int, str], _Sum]]  # thread -> (via, links, reason) -> sum


class _Reasons:
    """Names the reasons of one run, and remembers the time of each stack."""

    def __init__(self, program: Program, symbols: Symbols, names: Mapping[int, str], kinds: Mapping[int, int]) -> None:
        self._program, self._symbols, self._names, self._kinds = program, symbols, names, kinds
        self._stacks: dict[int, tuple[str, ...]] = {}
        self._sums: dict[tuple[str, str | None, tuple[str, ...]], _Sum] = defaultdict(_Sum)

    def find(self, wait: Any, waits: int = 0, time_ns: int = 0) -> str:
        if wait.state != _BLOCKED:
            return _OWN[wait.state]
        call = None if wait.call == _NO_CALL else self._names.get(wait.call, f"call {wait.call}")
        stack = self._get_stack(wait.stack)
        kind = self._kinds.get(wait.call, 0)
        reason = name_reason(kind, call, stack, is_io=bool(wait.is_io), request=wait.request)
        if reason == "other" and wait.stack == _NO_STACK_OF_JOURNAL:
            reason = "journal"
        if reason == "network" and wait.is_for_thread:
            reason = "lock"  # PostgreSQL's locks: its sessions sleep until they get a signal, in the call for clients
        if time_ns:
            self._sums[reason, call, stack].add(waits, time_ns, 0)
        return reason

    def list_stacks(self) -> list[Row]:
        """Return the costliest ones. Where the program takes few, these stand for the rest of their kind."""
        times: dict[tuple[str, str | None], list[int]] = defaultdict(lambda: [0, 0])
        for (reason, call, stack), total in self._sums.items():
            times[reason, call][bool(stack)] += total.time
        factors = {kind: 1 + without / taken for kind, (without, taken) in times.items() if taken}
        rows: list[Row] = [
            {
                "reason": reason,
                "syscall": call,
                "stack": ";".join(stack),
                "waits": round(total.waits * factors[reason, call]),
                "time_us": total.time * factors[reason, call] / 1e3,
            }
            for (reason, call, stack), total in self._sums.items()
            if stack
        ]
        return sorted(rows, key=lambda row: -row["time_us"])[:_MAX_STACKS]

    def _get_stack(self, number: int) -> tuple[str, ...]:
        if number < 0:
            return ()
        if number not in self._stacks:
            frames = self._program["stacks"][number].functions
            self._stacks[number] = self._symbols.name_stack([address for address in frames if address])
        return self._stacks[number]


def _identify(key: Any) -> tuple[int, int, int]:
    return key.device, key.inode, key.name


def _read(path: Path) -> str:
    """Return a file's text; nothing when what it is about has ended."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def _read_state(tid: int) -> tuple[bool, int, int, list[int]] | None:
    """Return whether a thread runs, its process, the call that it sleeps in and its arguments; None: it has ended."""
    lines = _read(Path("/proc", str(tid), "status")).splitlines()
    status = dict(line.split(":\t", 1) for line in lines if ":\t" in line)
    if "State" not in status:
        return None
    fields = _read(Path("/proc", str(tid), "syscall")).split()
    has_call = bool(fields) and re.fullmatch(r"\d+", fields[0])
    call, arguments = (int(fields[0]), [int(field, 16) for field in fields[1:7]]) if has_call else (_NO_CALL, [])
    return status["State"].startswith("R"), int(status["Tgid"]), call, arguments


def _state_needs(machine: str) -> Needs:
    return Needs(
        members=(
            *list_registers(machine),
            Member("task_struct", "flags", 4),
            Member("task_struct", "pid", 4),
            Member("task_struct", "__state", 4),
            Member("task_struct", "sched_info.last_arrival", 8, in_headers=False),
            Member("task_struct", "sched_info.last_queued", 8, in_headers=False),
            Member("task_struct", "sched_info.run_delay", 8, in_headers=False),
            Member("request", "cmd_flags", 4),
            *FILE_MEMBERS,
            *FOLLOWED_MEMBERS,
        ),
        tracepoints={
            "sched_switch": "task_struct",
            "sched_waking": "task_struct",
            "sched_wakeup_new": "task_struct",
            "block_rq_complete": "request",
            **FOLLOWED_TRACEPOINTS,
        },
        heads={"inode__HEAD": FILE_HEAD},
        enums=("req_flag_bits",),
        bits=(("task_struct", "in_iowait"),),
    )


def _choose_kernel(kernel: Kernel) -> Kernel:
    """Add where the tracepoint has the state of the thread that leaves: a later wake-up changes it in the thread."""
    if str(Path("/proc/self/ns/pid").readlink()) != _NAMESPACE:
        raise UnavailableError("waits need the host's process numbers, which a container has with --pid=host")
    if not kernel.has_btf:
        raise UnavailableError("waits need the kernel's own type information (/sys/kernel/btf/vmlinux)")
    for needed in _HANDLERS:
        if needed not in kernel.tracepoints:
            raise UnavailableError(f"this kernel has no tracepoint {needed}")
    arguments = re.search(r"ARGS_sched_switch (\d+)$", kernel.prelude, re.MULTILINE)
    if arguments is not None and arguments[1] == "4":  # since 5.18
        state = 3 if kernel.tracepoints["sched_switch"] == 1 else 1
        return replace(kernel, prelude=f"{kernel.prelude}#define ARG_prev_state {state}\n")
    return kernel
