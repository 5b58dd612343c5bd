"""System calls of the followed processes: how many, how large, how long, on which files, in which batches."""

from __future__ import annotations

import platform
import re
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from buckets import list_buckets
from calls import CALLS, define_registers, list_registers
from epochs import sum_processors
from file_of import FAULT_MEMBERS, FILE_HEAD, FILE_MEMBERS, PAGE_HEAD, allow_devices, make_file_row
from followed import FOLLOWED_HEADERS, FOLLOWED_MEMBERS, FOLLOWED_TRACEPOINTS, Group
from kernel import Kernel, Member, Needs, UnavailableError, read_kernel
from needs import describe_cost
from patterns import summarise_pattern
from probe import Probe, Selection
from program import Program, count_missed
from typed import TypedProgram

Row = dict[str, Any]

_SOURCE = Path(__file__).resolve().with_name("syscalls.bpf.c")
_OPERATIONS = ("read", "write", "sync")
_MODES = ("sync", "libaio", "io_uring", "mmap")  # as the enums in the program
_TRACEPOINTS = {"io_uring": "io_uring_complete", "mmap": "mm_filemap_fault"}  # that a mode is seen by
_LIMITS = {
    "io_uring_complete": "requests of io_uring are not seen: the kernel has no tracepoint that shows them",
    "mm_filemap_fault": "what is read and written through mapped memory is not seen (since Linux 6.12)",
}
_MODE_COLUMNS = (
    *("calls", "bytes", "call_share", "byte_share", "errors", "submits", "batch_mean", "in_flight_mean"),
    *("latency_mean_us", "polled", "unseen_completions"),
)
_LOSSES = ("threads", "files", "sizes", "requests", "batches", "vectors")
_HANDLERS = {
    "sys_enter": "on_enter",
    "sys_exit": "on_exit",
    "sched_process_exit": "on_thread_end",
    "io_uring_submit_req": "on_ring_submit",  # since 6.4
    "io_uring_submit_sqe": "on_ring_submit",
    "io_uring_complete": "on_ring_complete",
    "mm_filemap_fault": "on_fault",
    "mm_filemap_add_to_page_cache": "on_add",
    "writeback_dirty_folio": "on_dirty",
}
#: Longer batches than a function handles at once.
_TAILS = {"submitting": ("on_submit", "sys_enter"), "submitted": ("on_submitted", "sys_exit")}
#: Functions that the kernel checks by themselves -> map whose value they are given.
PARTS = {"begin_iocb": "threads", "settle": "threads"}
_RING_MEMBERS = (
    Member("io_kiocb", "file", 8, since="5.12"),
    Member("io_kiocb", "opcode", 1, since="5.12"),
    Member("io_kiocb", "flags", 0, since="5.12"),
    Member("io_kiocb", "ctx", 8, since="5.12"),
    Member("io_kiocb", "cqe.fd", 4, since="5.19"),
    Member("io_rw", "kiocb.ki_pos", 8, since="5.12"),
    Member("io_rw", "addr", 8, since="5.12"),
    Member("io_rw", "len", 0, since="5.12"),  # 8 bytes until 5.17
    Member("io_ring_ctx", "file_table.data.nodes", 8, since="6.13"),
    Member("io_ring_ctx", "file_table.data.nr", 4, since="6.13"),
    Member("io_rsrc_node", "file_ptr", 8, since="6.13"),
    Member("io_uring_cqe", "res", 4, since="5.12"),
)


class SyscallProbe(Probe):
    """Counts in the kernel, of one cgroup at a time."""

    def __init__(self, selection: Selection) -> None:
        if unknown := set(selection.calls) - set(CALLS):
            raise UnavailableError(f"unknown system calls {sorted(unknown)}; known are {', '.join(CALLS)}")
        machine = platform.machine()
        kernel = _choose_tracepoints(read_kernel(_state_needs(machine)))
        self._tracepoints = frozenset(kernel.tracepoints)
        self.limits = [sentence for point, sentence in _LIMITS.items() if point not in kernel.tracepoints]
        self._names = [name for name in selection.calls or CALLS if machine in CALLS[name].numbers]
        constants = {"ROW_io_uring_enter": 0} | {f"ROW_{name}": row for row, name in enumerate(self._names, 1)}
        constants |= {"ROWS": len(self._names) + 1, "ONE_DEVICE": int(bool(selection.devices))}
        kernel = replace(kernel, prelude=kernel.prelude + define_registers(machine))
        self._program, untyped = _load(kernel, constants)
        self.limits += describe_cost(untyped)
        self._fill_kinds(machine)
        allow_devices(self._program, selection.devices)
        self._epoch = self._ended_ns = 0

    def start(self, groups: Sequence[Group]) -> None:
        """Clear all counters and count for these cgroups, and those below, from now on."""
        self._program.clear(
            "rows", "losses", "modes", "levels", "batches", "streams", "files", "sizes", "crowd", "threads"
        )
        self._program.start_costs()
        self._epoch += 1
        self._program.follow(groups)
        self._configure(is_following=bool(groups))

    def pause(self) -> None:
        """Count nothing any more."""
        self._configure(is_following=False)
        self._ended_ns = time.monotonic_ns()

    def stop(self) -> Row:
        """Return the system calls of the run, the files they worked on, and the modes of I/O."""
        self._program.follow(())
        costs = self._program.list_costs()
        of_processors = {name: self._program.get("rows", row) for row, name in enumerate(self._names, 1)}
        rows = {name: sum_processors(processors) for name, processors in of_processors.items()}
        return {
            "syscalls": [_summarise_call(name, row) for name, row in rows.items() if row["calls"]],
            "syscall_latency": [
                {"syscall": name, **bucket} for name, row in rows.items() for bucket in list_buckets(row["latency"])
            ],
            "syscall_sizes": self._list_sizes(of_processors),
            **self._list_accesses(),
            "io_modes": self._list_modes(self._ended_ns),
            "io_batches": self._list_batches(),
            "lost_syscalls": self._sum_losses() | {"missed_events": count_missed(costs)},
            "syscall_programs": costs,
        }

    def _fill_kinds(self, machine: str) -> None:
        for row, name in enumerate(self._names, 1):
            call = CALLS[name]
            leaf = self._program["kinds"].Leaf(row, call.kind, call.descriptor, call.length, call.offset)
            self._program.put("kinds", call.numbers[machine], leaf)

    def _configure(self, *, is_following: bool) -> None:
        self._program.put("config", 0, self._program["config"].Leaf(is_following, self._epoch))

    def _sum_losses(self) -> dict[str, int]:
        return {name: sum(self._program.get("losses", reason)) for reason, name in enumerate(_LOSSES)}

    def _list_sizes(self, of_processors: Mapping[str, Any]) -> list[Row]:
        sizes = Counter({(self._names[key.row - 1], key.bytes): count for key, count in self._program["sizes"].items()})
        for name, processors in of_processors.items():
            for row in processors:
                sizes[name, row.size] += row.repeats
        return [{"syscall": name, "bytes": size, "calls": n} for (name, size), n in sorted(sizes.items()) if n]

    def _list_accesses(self) -> dict[str, list[Row]]:
        rows, syncs = [], []
        for key, file in self._program["files"].items():
            about = make_file_row(key, file.about)
            *accesses, sync = file.access
            rows += [
                about | {"op": op, **_summarise_access(access, is_write=op == "write")}
                for op, access in zip(_OPERATIONS, accesses, strict=False)
                if access.calls
            ]
            syncs += [about | {"calls": sync.calls}] if sync.calls else []
        return {"file_access": sorted(rows, key=lambda row: -row["bytes"]), "file_syncs": syncs}

    def _list_modes(self, end_ns: int) -> list[Row]:
        rows: list[Row] = []
        for i, op in enumerate(_OPERATIONS):
            modes = [self._read_mode(i * len(_MODES) + j, end_ns) for j in range(len(_MODES))]
            calls, size = sum(mode["calls"] for mode in modes), sum(mode["bytes"] for mode in modes)
            for j, mode in enumerate(modes):
                row: Row = {"op": op, "mode": _MODES[j]}
                if _TRACEPOINTS.get(_MODES[j], "sys_enter") not in self._tracepoints:
                    rows.append(row | dict.fromkeys(_MODE_COLUMNS))  # not seen, which is not none
                elif mode["calls"]:
                    batches = self._program.get("batches", i * len(_MODES) + j).submits
                    row |= {"calls": mode["calls"], "bytes": mode["bytes"], "call_share": mode["calls"] / calls}
                    row |= {"byte_share": mode["bytes"] / size if size else None}
                    rows.append(row | _summarise_mode(_MODES[j], mode, batches))
        return rows

    def _read_mode(self, number: int, end_ns: int) -> Row:
        """Return the sums of a mode, with the time since its last event, which is not yet booked."""
        mode, level = sum_processors(self._program.get("modes", number)), self._program.get("levels", number)
        open_ns = max(end_ns - level.last, 0) if level.in_flight else 0
        return mode | {"area": mode["area"] + level.in_flight * open_ns, "busy": mode["busy"] + open_ns}

    def _list_batches(self) -> list[Row]:
        return [
            {"op": op, "mode": mode, "batch": size, "submits": submits}
            for i, op in enumerate(_OPERATIONS)
            for j, mode in enumerate(_MODES)
            for size, submits in enumerate(self._program.get("batches", i * len(_MODES) + j).submits)
            if submits
        ]


def _state_needs(machine: str) -> Needs:
    return Needs(
        members=(
            *list_registers(machine),
            Member("task_struct", "flags", 4),
            Member("file", "f_pos", 8),
            *FILE_MEMBERS,
            *FAULT_MEMBERS,
            *FOLLOWED_MEMBERS,
            *_RING_MEMBERS,
        ),
        tracepoints={
            **dict.fromkeys(_HANDLERS, ""),
            "io_uring_submit_sqe": "io_kiocb",  # before 6.0 it had no request
            **FOLLOWED_TRACEPOINTS,
        },
        heads={"inode__HEAD": FILE_HEAD, "page__HEAD": PAGE_HEAD},
        enums=("pageflags",),
        headers=("fs", "fdtable", "sched", "ptrace", *FOLLOWED_HEADERS),
    )


def _load(kernel: Kernel, constants: Mapping[str, int]) -> tuple[Program, str | None]:
    """Return the program, and why it could not be loaded with the kernel's types."""
    try:
        return TypedProgram(_SOURCE, kernel, _HANDLERS, constants, _TAILS, parts=PARTS), None
    except UnavailableError as refusal:
        return Program(_SOURCE, kernel, _HANDLERS, constants, _TAILS), str(refusal)


def _choose_tracepoints(kernel: Kernel) -> Kernel:
    """Leave out what this kernel shows only in part."""
    for needed in ("sys_enter", "sys_exit"):
        if needed not in kernel.tracepoints:
            raise UnavailableError(f"this kernel has no tracepoint {needed}")
    without: set[str] = set()
    submits = {"io_uring_submit_req", "io_uring_submit_sqe"} & kernel.tracepoints.keys()
    is_known = re.search(r"ARGS_io_uring_complete (3|7)$", kernel.prelude, re.MULTILINE)  # the request is among them
    has_ring = bool(submits and is_known and "io_uring_complete" in kernel.tracepoints)
    if not has_ring:
        without |= {*submits, "io_uring_complete"}
    if "mm_filemap_fault" not in kernel.tracepoints:
        without |= {"mm_filemap_add_to_page_cache", "writeback_dirty_folio"}
    points = {name: index for name, index in kernel.tracepoints.items() if name not in without}
    more = f"#define HAVE_IO_URING 1\n#define ARG_io_uring_submit ARG_{min(submits)}\n" if has_ring else ""
    return replace(kernel, prelude=kernel.prelude + more, tracepoints=points)


def _summarise_call(name: str, row: Row) -> Row:
    mean_us = row["latency_ns"] / row["calls"] / 1e3
    has_bytes = CALLS[name].length or name in ("io_submit", "io_uring_enter")
    sums = {"calls": row["calls"], "errors": row["errors"], "bytes": row["bytes"] if has_bytes else None}
    return {"syscall": name, **sums, "latency_mean_us": mean_us}


def _summarise_access(access: Any, *, is_write: bool) -> Row:
    return {"calls": access.calls, "bytes": access.bytes, **summarise_pattern(access.pattern, is_write=is_write)}


def _summarise_mode(name: str, mode: Row, batches: Sequence[int]) -> Row:
    """Return what is known of one way to do I/O; times and batches of a mapping cannot be measured."""
    if name == "mmap":
        return dict.fromkeys(_MODE_COLUMNS[4:])
    submits = sum(batches)
    batch_mean = sum(size * count for size, count in enumerate(batches)) / submits if submits else None
    return {
        "errors": mode["errors"],
        "submits": mode["calls"] if name == "sync" else submits,
        "batch_mean": 1.0 if name == "sync" else batch_mean,
        "in_flight_mean": mode["area"] / mode["busy"] if mode["busy"] else None,
        "latency_mean_us": mode["latency_ns"] / mode["completed"] / 1e3 if mode["completed"] else None,
        "polled": mode["polled"],
        "unseen_completions": mode["unseen"],
    }
