"""Loads the block program and reads its maps: counters of one run at a time, kept apart by epoch.

Two sets of counters take turns. A run gets a fresh set by one write to the configuration, so that nothing is counted
twice or lost at its borders, and requests in flight at that moment are told apart from its own.
"""

from __future__ import annotations

import ctypes
import re
import struct
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from disk import Disk
from kernel import Kernel, Member, Needs, UnavailableError, compile_environment

__all__ = ["BLOCK_NEEDS", "OPERATIONS", "OWNERS", "Counters", "Reading", "Snapshot"]

OPERATIONS = ("read", "write", "discard", "flush")
OWNERS = ("unseen", "own", "inode", "journal", "flush", "foreign", "unknown")  # as the enums in the program
_SOURCE = Path(__file__).resolve().with_name("block.bpf.c")
_HANDLERS = {
    "block_io_start": "on_start",
    "block_getrq": "on_getrq",
    "block_bio_frontmerge": "on_frontmerge",
    "block_rq_issue": "on_issue",
    "block_rq_complete": "on_complete",
    "block_rq_requeue": "on_requeue",
    "writeback_dirty_folio": "on_dirty",
    "writeback_dirty_page": "on_dirty",
}
_FLAGS = ["-Wno-macro-redefined", "-Wno-duplicate-decl-specifier"]
_RUN_TIME_NS = 192  # offset in struct bpf_prog_info; run_cnt and recursion_misses (since 5.12) follow

_START = (  # what every event needs
    Member("request", "q", 8),
    Member("request", "mq_hctx", 8),
    Member("request", "cmd_flags", 4),
    Member("request", "tag", 4),
    Member("request", "internal_tag", 4),
    Member("request", "__data_len", 4),
    Member("request", "__sector", 8),
    Member("request", "bio", 8),
)
_WHOLE = (*_START, Member("request", "start_time_ns", 8), Member("request", "rq_disk", 8, until="5.17"))
#: What the block program reads of the kernel.
BLOCK_NEEDS = Needs(
    members=(
        *_WHOLE,
        Member("request_queue", "disk", 8, since="5.15"),
        Member("blk_mq_hw_ctx", "queue_num", 4),
        Member("gendisk", "major", 4),
        Member("gendisk", "first_minor", 4),
        Member("gendisk", "queue", 8),
        Member("block_device", "bd_disk", 8),
        Member("bio", "bi_bdev", 8),
        Member("bio", "bi_opf", 4),
        Member("bio", "bi_io_vec", 8),
        Member("bio", "bi_iter.bi_idx", 4),
        Member("bio", "bi_iter.bi_size", 4),
        Member("bio_vec", "bv_page", 8),
        Member("page", "compound_head", 8, until="7.2"),
        Member("page", "mapping", 8),
        Member("address_space", "host", 8),
        Member("inode", "i_ino", 8),
        Member("inode", "i_mode", 2),
        Member("task_struct", "flags", 4),
    ),
    tracepoints={
        "block_io_start": "request",
        "block_rq_issue": "request",
        "block_rq_complete": "request",
        "block_rq_requeue": "request",
        "block_getrq": "bio",
        "block_bio_frontmerge": "bio",
        "writeback_dirty_folio": "folio",
        "writeback_dirty_page": "page",  # until 5.17
    },
    heads={"request__START_END": _START, "request__END": _WHOLE},
    sizes=("bio_vec",),
    enums=("req_op", "req_opf", "req_flag_bits"),  # req_opf until 6.0
    headers=("blk-mq", "blkdev", "fs", "sched"),
)

Totals = dict[str, Any]  # field of struct totals_t or details_t -> number or list of numbers


@dataclass
class Snapshot:
    """Sums since the run began, for one point of its series."""

    at_ns: int
    totals: list[Totals]
    depth_area_ns: int


@dataclass
class Reading:
    """All counters of a run: per operation, per (operation, odd size), per queue time at each depth in ns."""

    begin_ns: int
    end_ns: int
    totals: list[Totals]
    details: list[Totals]
    odd_sizes: dict[tuple[int, int], int]
    depth_times: dict[int, list[int]]
    programs: list[dict[str, Any]]


class Counters:
    """The loaded program. `start` opens a run, `stop` closes it and returns its counters."""

    def __init__(self, kernel: Kernel, disk: Disk, unit: int, scope: str) -> None:
        self._disk = disk
        self._bpf, self._lib = _load(kernel, disk, unit, scope)
        self._config = self._bpf["config"].Leaf()
        self._before: dict[str, tuple[int, int, int]] = {}

    def start(self, cgroup: int) -> int:
        """Clear the other set of counters and let it count; return the moment in ns of the monotonic clock."""
        self._clear(1 - self._set)
        self._forget_hidden()
        self._put("streams", 0, self._bpf["streams"].Leaf())
        self._before = self._read_programs()
        return self._flip(cgroup)

    def stop(self) -> Reading:
        """Freeze the run's counters and read them."""
        begin, used = int(self._config.since), self._set
        programs = self._list_programs()
        end = self._flip(int(self._config.cgroup))
        return Reading(
            begin_ns=begin,
            end_ns=end,
            totals=[self._sum("totals", used, op) for op in range(len(OPERATIONS))],
            details=[self._sum("details", used, op) for op in range(len(OPERATIONS))],
            odd_sizes={(k.op, k.bytes): v.value for k, v in self._bpf["odd_sizes"].items() if k.set == used},
            depth_times={queue: self._read_depth(queue, used, begin, end) for queue in self._list_queues()},
            programs=programs,
        )

    def sample(self) -> Snapshot:
        """Read the sums of the run that is counted now; the rest of it stays in the kernel."""
        now = time.monotonic_ns()
        device = self._list_queues()[-1]
        times = self._read_depth(device, self._set, int(self._config.since), now)
        totals = [self._sum("totals", self._set, op) for op in range(len(OPERATIONS))]
        return Snapshot(now, totals, sum(depth * ns for depth, ns in enumerate(times)))

    def close(self) -> None:
        """Detach all programs."""
        self._bpf.cleanup()

    def __getitem__(self, table: str) -> Any:
        """Return a map as bcc has it."""
        return self._bpf[table]

    @property
    def _set(self) -> int:
        return int(self._config.epoch) & 1

    def _list_queues(self) -> list[int]:
        """Return the queues' places in the map; with several the last one is the whole device."""
        return list(range(self._disk.queues + (self._disk.queues > 1)))

    def _flip(self, cgroup: int) -> int:
        learnt = self.get("config", 0).queue  # the kernel side finds the device by itself and keeps its address there
        now = time.monotonic_ns()
        self._config = self._bpf["config"].Leaf(learnt, cgroup, now, int(self._config.epoch) + 1)
        self._put("config", 0, self._config)
        return now

    def _clear(self, which: int) -> None:
        for op in range(len(OPERATIONS)):
            self._put("totals", which * len(OPERATIONS) + op, self._bpf["totals"].Leaf())
            self._put("details", which * len(OPERATIONS) + op, self._bpf["details"].Leaf())
        for queue in range(self._disk.queues + 1):
            self._put("depths", which * (self._disk.queues + 1) + queue, self._bpf["depths"].Leaf())
        for key in [key for key in self._bpf["odd_sizes"] if key.set == which]:
            del self._bpf["odd_sizes"][key]

    def _forget_hidden(self) -> None:
        """Bring the depth of an idle device back to 0: some kernels hide completions from BPF programs."""
        queues = range(self._disk.queues + 1)
        states = {queue: self.get("queues", queue) for queue in queues}
        if not any(state.depth for state in states.values()) or not self._disk.is_idle():
            return
        for slot in range(self._disk.slots * self._disk.queues):
            self._put("slots", slot, self._bpf["slots"].Leaf())
        for queue, state in states.items():
            state.depth = 0
            self._put("queues", queue, state)

    def _sum(self, table: str, which: int, op: int) -> Totals:
        cpus = self.get(table, which * len(OPERATIONS) + op)
        sums: Totals = {}
        for name, kind in cpus._type_._fields_:
            values = [getattr(cpu, name) for cpu in cpus]
            is_array = issubclass(kind, ctypes.Array)
            sums[name] = [sum(column) for column in zip(*values, strict=True)] if is_array else sum(values)
        return sums

    def _read_depth(self, queue: int, which: int, begin: int, end: int) -> list[int]:
        """Return ns spent at each depth, with the time after the run's last event, which the kernel has not booked."""
        depth = int(self.get("queues", queue).depth)
        times = list(self.get("depths", which * (self._disk.queues + 1) + queue).time)
        times[min(depth, len(times) - 1)] += max(end - begin - sum(times), 0)
        return times

    def _list_programs(self) -> list[dict[str, Any]]:
        """Return what each program cost since the run began; runs and time only with kernel.bpf_stats_enabled."""
        rows = []
        for name, now in self._read_programs().items():
            time_ns, runs, missed = (after - before for after, before in zip(now, self._before[name], strict=True))
            rows.append({"program": name, "runs": runs, "time_ns": time_ns, "missed": missed})
        return rows

    def _read_programs(self) -> dict[str, tuple[int, int, int]]:
        programs = {}
        for name, function in self._bpf.funcs.items():
            info, length = ctypes.create_string_buffer(256), ctypes.c_uint32(256)
            if self._lib.bpf_obj_get_info(function.fd, info, ctypes.byref(length)) < 0:
                raise OSError(f"cannot read the state of BPF program {name.decode()}")
            programs[name.decode()] = struct.unpack_from("<3Q", info, _RUN_TIME_NS)
        return programs

    def get(self, table: str, key: int) -> Any:
        """Return an element of an array; of a per-CPU array the values of all CPUs."""
        leaf = self._bpf[table].Leaf()
        if self._lib.bpf_lookup_elem(self._bpf[table].map_fd, ctypes.byref(ctypes.c_int(key)), ctypes.byref(leaf)) < 0:
            raise OSError(f"cannot read entry {key} of BPF map {table}")
        return leaf

    def _put(self, table: str, key: int, leaf: Any) -> None:
        handle = self._bpf[table].map_fd
        if self._lib.bpf_update_elem(handle, ctypes.byref(ctypes.c_int(key)), ctypes.byref(leaf), 0) < 0:
            raise OSError(f"cannot write entry {key} of BPF map {table}")


def _load(kernel: Kernel, disk: Disk, unit: int, scope: str) -> tuple[Any, Any]:
    try:
        from bcc import BPF, lib  # noqa: PLC0415 - its absence is an answer, not a crash
    except ImportError as missing:
        raise UnavailableError(
            f"no bcc for the system's Python ({missing}); Debian's package is python3-bpfcc"
        ) from missing
    for needed in ("block_rq_issue", "block_rq_complete"):
        if needed not in kernel.tracepoints:
            raise UnavailableError(f"this kernel has no tracepoint {needed}")
    try:
        with compile_environment(kernel):
            bpf = BPF(text=_compose(kernel, disk, unit, scope), cflags=_FLAGS)
            for tracepoint, handler in _choose_handlers(kernel).items():
                bpf.load_func(handler, BPF.RAW_TRACEPOINT)
                bpf.attach_raw_tracepoint(tp=tracepoint, fn_name=handler)
    except Exception as failure:  # bcc raises nothing narrower
        raise UnavailableError(f"BPF is not to be had: {failure}") from failure
    return bpf, lib


def _choose_handlers(kernel: Kernel) -> dict[str, str]:
    """Return tracepoint -> program; who submits is asked per request since 6.5, before that per bio."""
    handlers = {point: handler for point, handler in _HANDLERS.items() if point in kernel.tracepoints}
    if "block_io_start" in handlers:
        handlers.pop("block_getrq", None)
        handlers.pop("block_bio_frontmerge", None)
    return handlers


def _compose(kernel: Kernel, disk: Disk, unit: int, scope: str) -> str:
    constants = {
        "DEVICE_MAJOR": disk.major,
        "DEVICE_MINOR": disk.minor,
        "FIRST_SECTOR": f"{disk.first_sector}ULL",
        "END_SECTOR": f"{disk.end_sector}ULL",
        "UNIT_BYTES": unit,
        "QUEUES": disk.queues,
        "SLOTS": disk.slots,
        "SCOPE_PROCESS": int(scope == "process"),
    }
    lines = "\n".join(f"#define {name} {value}" for name, value in constants.items())
    program = re.sub(
        r'^#include "(.+)"$',
        lambda line: _SOURCE.with_name(line[1]).read_text(),  # bcc rewrites map accesses only in the main file
        _SOURCE.read_text(),
        flags=re.MULTILINE,
    )
    dirtying = "writeback_dirty_folio" if "writeback_dirty_folio" in kernel.tracepoints else "writeback_dirty_page"
    return f"{kernel.prelude}{lines}\n#define ARG_writeback_dirty ARG_{dirtying}\n{program}"
