"""A BPF program of a probe: compiled, attached to raw tracepoints, its maps read and written, its cost known."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from followed import FOLLOWED_HANDLERS, MAX_GROUPS, is_process
from kernel import Kernel, UnavailableError, compile_environment

__all__ = ["Program", "call_bpf", "count_missed"]

_FLAGS = ["-Wno-macro-redefined", "-Wno-duplicate-decl-specifier"]
_FACTS = "facts.bpf.h"  # the kernel's facts and the constants: they stand before everything else
_RUN_TIME_NS = 192  # offset in struct bpf_prog_info; run_cnt and recursion_misses (since 5.12) follow

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_TEST_RUN = 10  # BPF_PROG_TEST_RUN

Cost = tuple[int, int, int]


class Program:
    """One C source with what it includes; `handlers`: tracepoint -> function, those this kernel has are attached.

    `constants` become macros; `tails`: program array -> functions that it holds, from index 0 on; `callable_functions`:
    for `call`. UnavailableError when bcc or the kernel refuses.
    """

    def __init__(
        self,
        source: Path,
        kernel: Kernel,
        handlers: Mapping[str, str],
        constants: Mapping[str, int | str],
        tails: Mapping[str, Sequence[str]] = MappingProxyType({}),
        callable_functions: Sequence[str] = (),
    ) -> None:
        self._descriptors: dict[str, int] = {}  # of the loaded functions
        self._processes = False  # whether processes are followed one by one
        try:
            from bcc import BPF, lib  # noqa: PLC0415 - its absence is an answer, not a crash
        except ImportError as missing:
            raise UnavailableError(
                f"no bcc for the system's Python ({missing}); Debian's package is python3-bpfcc"
            ) from missing
        self._lib = lib
        try:
            with compile_environment(kernel):
                self._bpf = BPF(text=_compose(source, kernel, {"GROUPS": MAX_GROUPS, **constants}), cflags=_FLAGS)
                for table, functions in tails.items():
                    for index, function in enumerate(functions):
                        loaded = self._bpf.load_func(function, BPF.RAW_TRACEPOINT)
                        self._bpf[table][ctypes.c_int(index)] = ctypes.c_int(loaded.fd)
                        self._descriptors[function] = loaded.fd
                load = self._bpf.load_func
                self._callable = {name: load(name, BPF.RAW_TRACEPOINT).fd for name in callable_functions}
                for tracepoint, handler in {**handlers, **FOLLOWED_HANDLERS}.items():
                    if tracepoint in kernel.tracepoints:
                        self._descriptors[handler] = self._attach(kernel, tracepoint, handler)
        except Exception as failure:  # bcc raises nothing narrower
            raise UnavailableError(f"BPF is not available: {failure}") from failure
        self._before = self._read_costs()

    def __getitem__(self, table: str) -> Any:
        """Return a map as bcc has it."""
        return self._bpf[table]

    def get(self, table: str, key: int) -> Any:
        """Return an element of an array; of a per-CPU array the values of all CPUs."""
        leaf = self._bpf[table].Leaf()
        if self._lib.bpf_lookup_elem(self._bpf[table].map_fd, ctypes.byref(ctypes.c_int(key)), ctypes.byref(leaf)) < 0:
            raise OSError(f"cannot read entry {key} of BPF map {table}")
        return leaf

    def put(self, table: str, key: int, leaf: Any) -> None:
        """Write an element of an array."""
        handle = self._bpf[table].map_fd
        if self._lib.bpf_update_elem(handle, ctypes.byref(ctypes.c_int(key)), ctypes.byref(leaf), 0) < 0:
            raise OSError(f"cannot write entry {key} of BPF map {table}")

    def clear(self, *tables: str) -> None:
        """Zero all elements of arrays, remove those of hashes."""
        for name in tables:
            table = self._bpf[name]
            if not _is_array(table):
                table.clear()
                continue
            keys, zeros = (table.Key * len(table))(*range(len(table))), (table.Leaf * len(table))()
            table.items_update_batch(keys, zeros)

    def call(self, function: str, *arguments: int) -> int:
        """Run a function that no tracepoint runs, and return what it returns."""
        context = (ctypes.c_uint64 * 12)(*arguments)
        attributes = bytearray(80)  # struct test of union bpf_attr
        struct.pack_into("<I", attributes, 0, self._callable[function])
        struct.pack_into("<IIQ", attributes, 40, ctypes.sizeof(context), 0, ctypes.addressof(context))
        call_bpf(_TEST_RUN, attributes)
        return int(struct.unpack_from("<I", attributes, 4)[0])

    def follow(self, groups: Sequence[Path]) -> None:
        """Let the processes of cgroups, and of those below them, count as followed, also when they leave; none: nobody.

        A directory of /proc instead stands for one process, wherever it is, with its future children. When groups are
        added to the same ones, who has left these goes on counting.
        """
        processes = [int(group.name) for group in groups if is_process(group)]
        groups = [group for group in groups if not is_process(group)]
        table, before, now = self["followed"], self.get("following", 0), self["following"].Leaf()
        ids = [group.stat().st_ino for group in groups]
        now.groups, now.ids = len(ids), type(now.ids)(*ids)
        if before.groups and ids[: before.groups] == list(before.ids)[: before.groups]:
            now.moved = before.moved
        elif not (processes and self._processes):  # else a child that is born now would be lost
            self.clear("family")
        for index in range(MAX_GROUPS):
            self._lib.bpf_delete_elem(table.map_fd, ctypes.byref(ctypes.c_int(index)))
        for index, group in enumerate(groups):
            handle = ctypes.c_int(os.open(group, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC))
            try:
                self.put("followed", index, handle)
            finally:
                os.close(handle.value)
        for process in processes:
            self["family"][ctypes.c_uint32(process)] = ctypes.c_uint32(process)
        self._processes = bool(processes)
        now.moved += self._processes
        self.put("following", 0, now)

    def count_moved(self) -> int:
        """Return how often a followed process has left the cgroups since they are followed."""
        return int(self.get("following", 0).moved) - self._processes

    def start_costs(self) -> None:
        """Let `list_costs` count from now on."""
        self._before = self._read_costs()

    def list_costs(self) -> list[dict[str, Any]]:
        """Return what each function cost since `start_costs`; runs and time only with kernel.bpf_stats_enabled."""
        rows = []
        for name, now in self._read_costs().items():
            time_ns, runs, missed = (after - before for after, before in zip(now, self._before[name], strict=True))
            rows.append({"program": name, "runs": runs, "time_ns": time_ns, "missed": missed})
        return rows

    def close(self) -> None:
        """Detach all functions."""
        self._bpf.cleanup()

    def _attach(self, kernel: Kernel, tracepoint: str, handler: str) -> int:
        """Load a function, let it run at a tracepoint, and return its descriptor."""
        loaded = self._bpf.load_func(handler, self._bpf.RAW_TRACEPOINT)
        self._bpf.attach_raw_tracepoint(tp=tracepoint, fn_name=handler)
        return int(loaded.fd)

    def _read_costs(self) -> dict[str, Cost]:
        costs = {}
        for name, descriptor in self._descriptors.items():
            info, length = ctypes.create_string_buffer(256), ctypes.c_uint32(256)
            if self._lib.bpf_obj_get_info(descriptor, info, ctypes.byref(length)) < 0:
                raise OSError(f"cannot read the state of BPF program {name}")
            costs[name] = struct.unpack_from("<3Q", info, _RUN_TIME_NS)
        return costs


def call_bpf(command: int, attributes: bytearray) -> int:
    """Make the system call bpf; the kernel writes its answer into the attributes, too. OSError when it refuses."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of the system call bpf is not known on {platform.machine()}")
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    result = ctypes.CDLL(None, use_errno=True).syscall(number, command, buffer, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def count_missed(costs: Sequence[Mapping[str, Any]]) -> int:
    """Return how many events, whoever caused them, found their function busy on the same processor."""
    return sum(row["missed"] for row in costs)


def _is_array(table: Any) -> bool:
    from bcc.table import ArrayBase  # noqa: PLC0415 - without bcc there are no tables

    return isinstance(table, ArrayBase)


def _compose(source: Path, kernel: Kernel, constants: Mapping[str, int | str]) -> str:
    """Return one text: bcc rewrites map accesses only in the main file."""
    defines = "\n".join(f"#define {name} {value}" for name, value in constants.items())
    return f"{kernel.prelude}{defines}\n{_include(source, {_FACTS})}"


def _include(source: Path, included: set[str]) -> str:
    """Return a source with each header that it includes inserted where it is first named."""

    def replace(line: re.Match[str]) -> str:
        if line[1] in included:
            return ""
        included.add(line[1])
        return _include(source.with_name(line[1]), included)

    text = source.read_text().replace("#pragma once\n", "")
    return re.sub(r'^#include "(.+)"$', replace, text, flags=re.MULTILINE)
