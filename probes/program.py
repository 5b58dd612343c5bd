"""A BPF program of a probe: compiled, attached to raw tracepoints, its maps read and written, its cost known."""

from __future__ import annotations

import contextlib
import ctypes
import os
import re
import struct
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from bpf import Map, call_bpf, read_info
from compiling import compile_program, place
from followed import FOLLOWED_HANDLERS, MAX_GROUPS, Group, Process, list_processes
from kernel import Kernel, UnavailableError

_FACTS = "facts.bpf.h"  # the kernel's facts and the constants: they stand before everything else
_RUN_TIME_NS = 192  # offset in struct bpf_prog_info; run_cnt and recursion_misses (since 5.12) follow
_PROG_LOAD, _TEST_RUN, _RAW_TRACEPOINT_OPEN = 5, 10, 17
_PLAIN = (17, 0, 0)  # a program of type raw tracepoint, attached by the tracepoint's name
_INSTRUCTION_BYTES, _FUNCTION_BYTES = 8, 8
_LOG_BYTES = 1 << 24

Cost = tuple[int, int, int]
#: Program type, attach type, and the id of the type of what it is attached to.
Kind = tuple[int, int, int]


class Program:
    """One C source with what it includes; `handlers`: tracepoint -> function, those this kernel has are attached.

    `constants` become macros; `tails`: program array -> the function that it holds, and the tracepoint whose function
    calls it; `callable_functions`: for `call`. UnavailableError when bcc or the kernel refuses.
    """

    def __init__(
        self,
        source: Path,
        kernel: Kernel,
        handlers: Mapping[str, str],
        constants: Mapping[str, int | str],
        tails: Mapping[str, tuple[str, str]] = MappingProxyType({}),
        callable_functions: Sequence[str] = (),
    ) -> None:
        self._descriptors: dict[str, int] = {}  # of the loaded functions
        self._links: list[int] = []
        self._maps: dict[str, Map] = {}
        self._types = 0  # descriptor of those of functions
        self._processes = False  # whether processes are followed one by one
        compiled = compile_program(_compose(source, kernel, {"GROUPS": MAX_GROUPS, **constants}), kernel)
        self._functions: dict[str, str] = compiled["functions"]
        try:
            for name, *shape in compiled["maps"]:
                self._maps[name] = Map(name, *shape)
            pairs = {**handlers, **FOLLOWED_HANDLERS}.items()
            attached = {tracepoint: handler for tracepoint, handler in pairs if tracepoint in kernel.tracepoints}
            kinds = {function: self._find_kind(kernel, tracepoint) for function, tracepoint in tails.values()}
            kinds |= {handler: self._find_kind(kernel, tracepoint) for tracepoint, handler in attached.items()}
            self._load_all({**dict.fromkeys(callable_functions, _PLAIN), **kinds})
            for table, (function, _) in tails.items():
                self[table][0] = self._descriptors[function]
            for tracepoint, handler in attached.items():
                self._attach(tracepoint, handler)
        except OSError as refusal:
            self.close()
            raise UnavailableError(f"BPF is not available: {refusal}") from refusal
        self._before = self._read_costs()

    def __getitem__(self, table: str) -> Map:
        """Return a map."""
        return self._maps[table]

    def get(self, table: str, key: int) -> Any:
        """Return an element of an array; of a per-CPU array the values of all CPUs."""
        return self._maps[table][key]

    def put(self, table: str, key: int, leaf: Any) -> None:
        """Write an element of an array."""
        self._maps[table][key] = leaf

    def clear(self, *tables: str) -> None:
        """Zero all elements of arrays, remove those of hashes."""
        for name in tables:
            self._maps[name].clear()

    def call(self, function: str, *arguments: int) -> int:
        """Run a function that no tracepoint runs, and return what it returns."""
        context = (ctypes.c_uint64 * 12)(*arguments)
        attributes = bytearray(80)  # struct test of union bpf_attr
        struct.pack_into("<I", attributes, 0, self._descriptors[function])
        struct.pack_into("<IIQ", attributes, 40, ctypes.sizeof(context), 0, ctypes.addressof(context))
        call_bpf(_TEST_RUN, attributes)
        return int(struct.unpack_from("<I", attributes, 4)[0])

    def follow(self, groups: Sequence[Group]) -> None:
        """Let the processes of cgroups, and of those below them, count as followed, also when they leave; none: nobody.

        A process counts wherever it is, with its future children. When groups are added to the same ones, who has left
        these goes on counting.
        """
        processes = [group for group in groups if isinstance(group, Process)]
        directories = [group for group in groups if not isinstance(group, Process)]
        before, now = self.get("following", 0), self["following"].Leaf()
        ids = [directory.stat().st_ino for directory in directories]
        now.groups, now.ids = len(ids), type(now.ids)(*ids)
        if before.groups and ids[: before.groups] == list(before.ids)[: before.groups]:
            now.moved = before.moved
        elif not (processes and self._processes):  # else a child that is born now would be lost
            self.clear("family")
        for index in range(MAX_GROUPS):
            with contextlib.suppress(KeyError):
                del self["followed"][index]
        for index, directory in enumerate(directories):
            handle = os.open(directory, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
            try:
                self.put("followed", index, handle)
            finally:
                os.close(handle)
        # Those that are in the groups already are followed, too, when they are moved out.
        for number in (*(process.pid for process in processes), *list_processes(directories)):
            self["family"][number] = number
        for process in processes:
            if not process.is_there():  # else whoever gets the number later is told by the fork
                with contextlib.suppress(KeyError):
                    del self["family"][process.pid]
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
        for descriptor in (*self._links, *self._descriptors.values()):
            os.close(descriptor)
        for opened in self._maps.values():
            opened.close()
        self._links.clear()
        self._descriptors.clear()
        self._maps.clear()

    def _attach(self, tracepoint: str, handler: str) -> None:
        """Let a loaded function run at a tracepoint until its link is closed."""
        name = ctypes.create_string_buffer(tracepoint.encode())
        self._link(ctypes.addressof(name), handler)

    def _find_kind(self, _kernel: Kernel, _tracepoint: str) -> Kind:
        """Return as what a function that runs at a tracepoint is loaded."""
        return _PLAIN

    def _link(self, name: int, handler: str) -> None:
        attributes = bytearray(struct.pack("<QIIQ", name, self._descriptors[handler], 0, 0))
        self._links.append(call_bpf(_RAW_TRACEPOINT_OPEN, attributes))

    def _load_all(self, kinds: Mapping[str, Kind]) -> None:
        """Load functions side by side: the kernel takes a good part of a start to check them."""
        refusals: list[OSError] = []

        def load(function: str, kind: Kind) -> None:
            try:
                self._load(function, kind)
            except OSError as refusal:
                refusals.append(refusal)

        threads = [threading.Thread(target=load, args=pair) for pair in kinds.items()]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if refusals:
            raise refusals[0]

    def _load(self, function: str, kind: Kind) -> None:
        """Load a function; OSError when the kernel refuses, with the end of what it says."""
        code, functions = self._assemble(function)
        instructions, license_ = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
        attributes = bytearray(144)
        pointers = ctypes.addressof(instructions), ctypes.addressof(license_)
        struct.pack_into("<2I2Q", attributes, 0, kind[0], len(code) // _INSTRUCTION_BYTES, *pointers)
        struct.pack_into("15s", attributes, 48, function.encode())
        known = ctypes.create_string_buffer(functions, len(functions))
        places = self._types, _FUNCTION_BYTES, ctypes.addressof(known), len(functions) // _FUNCTION_BYTES
        struct.pack_into("<3IQI", attributes, 68, kind[1], *places)
        struct.pack_into("<I", attributes, 108, kind[2])
        try:
            self._descriptors[function] = call_bpf(_PROG_LOAD, attributes)
        except OSError as refusal:
            raise OSError(refusal.errno, f"{function}: {refusal.strerror}: {_ask_why(attributes)}") from refusal

    def _assemble(self, function: str) -> tuple[bytes, bytes]:
        """Return the code of a function as it is loaded, and its table of functions (struct bpf_func_info)."""
        numbers = {number: opened.map_fd for number, opened in enumerate(self._maps.values())}
        return place(bytes.fromhex(self._functions[function]), numbers), b""

    def _read_costs(self) -> dict[str, Cost]:
        return {
            name: struct.unpack_from("<3Q", read_info(descriptor), _RUN_TIME_NS)
            for name, descriptor in self._descriptors.items()
        }


def _ask_why(attributes: bytearray) -> str:
    log = ctypes.create_string_buffer(_LOG_BYTES)
    struct.pack_into("<2IQ", attributes, 24, 1, _LOG_BYTES, ctypes.addressof(log))
    with contextlib.suppress(OSError):  # it is what we want to know about
        os.close(call_bpf(_PROG_LOAD, attributes))
    return " ".join(log.value.decode(errors="replace").strip().splitlines()[-3:])


def count_missed(costs: Sequence[Mapping[str, Any]]) -> int:
    """Return how many events, whoever caused them, found their function busy on the same processor."""
    return sum(row["missed"] for row in costs)


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
