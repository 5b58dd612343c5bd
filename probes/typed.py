"""Loads BPF programs that know the kernel's types: they read its memory by plain loads instead of calls of a helper.

A load costs about a nanosecond, a call thirty to fifty. bcc compiles such a program, but cannot load it. The kernel
checks it against its own type information (program type tracing, attached to a raw tracepoint, since 5.5; a pointer
without a type is given one by bpf_rdonly_cast, since 6.2). Where it refuses, the same source is compiled without. See
https://docs.kernel.org/bpf/kfuncs.html and the structs of BPF_PROG_LOAD in linux/bpf.h.
"""

from __future__ import annotations

import ctypes
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from bpf import call_bpf
from btf import make_types
from kernel import Kernel, UnavailableError
from program import Kind, Program

#: What a call of a function of the kernel, or of a part, looks like as compiled: of a helper with this number or one of
#: the next ones, which do not exist.
_FIRST_MARK = 0x6B6E6F62
_TRACING, _RAW_TRACEPOINT = 26, 23  # program type and attach type
_INSTRUCTION, _FUNCTION = struct.Struct("<BBhi"), struct.Struct("<2I")
#: Opcode; source registers that make the number a function of the kernel, or the distance to one of the program.
_CALL, _CALL_KERNEL, _CALL_PART = 0x85, 2 << 4, 1 << 4
_BTF_LOAD = 18


class TypedProgram(Program):
    """A program whose source is compiled with TYPED; UnavailableError when bcc or the kernel refuses.

    `parts`: functions that the kernel checks once, wherever they are called -> the map whose value they are given.
    """

    def __init__(
        self,
        source: Path,
        kernel: Kernel,
        handlers: Mapping[str, str],
        constants: Mapping[str, int | str],
        tails: Mapping[str, tuple[str, str]] = MappingProxyType({}),
        callable_functions: Sequence[str] = (),
        parts: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        if not kernel.cast:
            raise UnavailableError("this kernel has no bpf_rdonly_cast")
        functions, marks = _list_functions(kernel), list_marks(kernel, tuple(parts))
        self._calls = {marks[name]: function for name, function in functions.items()}
        self._parts = {marks[f"PART_{part}"]: part for part in parts}
        self._tables = parts
        super().__init__(source, kernel, handlers, {**constants, **marks}, tails, callable_functions)

    def _attach(self, tracepoint: str, handler: str) -> None:
        self._link(0, handler)

    def _find_kind(self, kernel: Kernel, tracepoint: str) -> Kind:
        return _TRACING, _RAW_TRACEPOINT, kernel.probe_types[tracepoint]

    def _load_all(self, kinds: Mapping[str, Kind]) -> None:
        sizes = {part: self[table].leaf_bytes for part, table in self._tables.items()}
        types, self._numbers = make_types(tuple(kinds), sizes)
        data = ctypes.create_string_buffer(types, len(types))
        self._types = call_bpf(_BTF_LOAD, bytearray(struct.pack("<QQII", ctypes.addressof(data), 0, len(types), 0)))
        try:
            super()._load_all(kinds)
        finally:
            os.close(self._types)

    def _assemble(self, function: str) -> tuple[bytes, bytes]:
        """Call the kernel's functions where marks are, and parts, which follow the code."""
        code, starts = bytearray(super()._assemble(function)[0]), {function: 0}
        offset = 0
        while offset < len(code):
            *call, mark = _INSTRUCTION.unpack_from(code, offset)
            if call == [_CALL, 0, 0] and mark in self._calls:
                _INSTRUCTION.pack_into(code, offset, _CALL, _CALL_KERNEL, 0, self._calls[mark])
            elif call == [_CALL, 0, 0] and (part := self._parts.get(mark)):
                if part not in starts:
                    starts[part] = len(code) // _INSTRUCTION.size
                    code += super()._assemble(part)[0]
                distance = starts[part] - offset // _INSTRUCTION.size - 1
                _INSTRUCTION.pack_into(code, offset, _CALL, _CALL_PART, 0, distance)
            offset += _INSTRUCTION.size
        return bytes(code), b"".join(_FUNCTION.pack(start, self._numbers[name]) for name, start in starts.items())


def list_marks(kernel: Kernel, parts: Sequence[str] = ()) -> dict[str, int]:
    """Return the macros of a typed program: calls of functions of the kernel and of parts, which are linked later."""
    names = (*_list_functions(kernel), *(f"PART_{part}" for part in parts))
    return {name: mark for mark, name in enumerate(names, _FIRST_MARK)}


def _list_functions(kernel: Kernel) -> dict[str, int]:
    """Return macro -> id of the kernel's function."""
    return {
        "TYPED": kernel.cast,
        **dict(zip(("PREEMPT_DISABLE", "PREEMPT_ENABLE"), kernel.preemption or (), strict=False)),
        **dict(zip(("LOOP_BEGIN", "LOOP_NEXT", "LOOP_END"), kernel.loop or (), strict=False)),
    }
