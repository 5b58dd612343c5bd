"""Loads BPF programs that know the kernel's types: they read its memory by plain loads instead of calls of a helper.

A load costs about a nanosecond, a call thirty to fifty. bcc compiles such a program, but cannot load it. The kernel
checks it against its own type information (program type tracing, attached to a raw tracepoint, since 5.5; a pointer
without a type is given one by bpf_rdonly_cast, since 6.2). Where it refuses, the same source is compiled without. See
https://docs.kernel.org/bpf/kfuncs.html and the structs of BPF_PROG_LOAD in linux/bpf.h.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from kernel import Kernel, UnavailableError
from program import Kind, Program

__all__ = ["TypedProgram"]

#: What a call of a function of the kernel looks like as compiled: of a helper with this number, which does not exist.
_CAST_MARK, _DISABLE_MARK, _ENABLE_MARK = 0x6B6E6F62, 0x6B6E6F63, 0x6B6E6F64
_TRACING, _RAW_TRACEPOINT = 26, 23  # program type and attach type
_INSTRUCTION = struct.Struct("<BBhi")
_CALL, _CALL_KERNEL = 0x85, 2 << 4  # opcode; source register that makes the number a function of the kernel


class TypedProgram(Program):
    """A program whose source is compiled with TYPED; UnavailableError when bcc or the kernel refuses."""

    def __init__(
        self,
        source: Path,
        kernel: Kernel,
        handlers: Mapping[str, str],
        constants: Mapping[str, int | str],
        tails: Mapping[str, tuple[str, str]] = MappingProxyType({}),
        callable_functions: Sequence[str] = (),
    ) -> None:
        if not kernel.cast:
            raise UnavailableError("this kernel has no bpf_rdonly_cast")
        self._calls, macros = {_CAST_MARK: kernel.cast}, {"TYPED": _CAST_MARK}
        if kernel.preemption:
            self._calls |= dict(zip((_DISABLE_MARK, _ENABLE_MARK), kernel.preemption, strict=True))
            macros |= {"PREEMPT_DISABLE": _DISABLE_MARK, "PREEMPT_ENABLE": _ENABLE_MARK}
        super().__init__(source, kernel, handlers, {**constants, **macros}, tails, callable_functions)

    def _attach(self, tracepoint: str, handler: str) -> None:
        self._link(0, handler)

    def _find_kind(self, kernel: Kernel, tracepoint: str) -> Kind:
        return _TRACING, _RAW_TRACEPOINT, kernel.probe_types[tracepoint]

    def _complete(self, code: bytes) -> bytes:
        return _call_kernel(code, self._calls)


def _call_kernel(code: bytes, functions: Mapping[int, int]) -> bytes:
    """Return the code with calls of these numbers made calls of functions of the kernel, by their ids."""
    linked = bytearray(code)
    for offset in range(0, len(code), _INSTRUCTION.size):
        *call, number = _INSTRUCTION.unpack_from(code, offset)
        if call == [_CALL, 0, 0] and number in functions:
            _INSTRUCTION.pack_into(linked, offset, _CALL, _CALL_KERNEL, 0, functions[number])
    return bytes(linked)
