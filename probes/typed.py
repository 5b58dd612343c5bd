"""Loads BPF programs that know the kernel's types: they read its memory by plain loads instead of calls of a helper.

A load costs about a nanosecond, a call thirty to fifty. bcc compiles such a program, but cannot load it. The kernel
checks it against its own type information (program type tracing, attached to a raw tracepoint, since 5.5; a pointer
without a type is given one by bpf_rdonly_cast, since 6.2). Where it refuses, the same source is compiled without. See
https://docs.kernel.org/bpf/kfuncs.html and the structs of BPF_PROG_LOAD in linux/bpf.h.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import struct
from collections.abc import Mapping, Sequence
from pathlib import Path

from kernel import Kernel, UnavailableError
from program import Program, call_bpf

__all__ = ["TypedProgram"]

#: What a call of a function of the kernel looks like as compiled: of a helper with this number, which does not exist.
_CAST_MARK, _DISABLE_MARK, _ENABLE_MARK = 0x6B6E6F62, 0x6B6E6F63, 0x6B6E6F64
_PROG_LOAD, _RAW_TRACEPOINT_OPEN = 5, 17
_TRACING, _RAW_TRACEPOINT = 26, 23  # program type and attach type
_INSTRUCTION = struct.Struct("<BBhi")
_CALL, _CALL_KERNEL = 0x85, 2 << 4  # opcode; source register that makes the number a function of the kernel
_LOG_BYTES = 1 << 24


class TypedProgram(Program):
    """A program whose source is compiled with TYPED; UnavailableError when bcc or the kernel refuses."""

    def __init__(
        self,
        source: Path,
        kernel: Kernel,
        handlers: Mapping[str, str],
        constants: Mapping[str, int | str],
        callable_functions: Sequence[str] = (),
    ) -> None:
        self._links: list[int] = []
        if not kernel.cast:
            raise UnavailableError("this kernel has no bpf_rdonly_cast")
        self._functions, macros = {_CAST_MARK: kernel.cast}, {"TYPED": _CAST_MARK}
        if kernel.preemption:
            self._functions |= dict(zip((_DISABLE_MARK, _ENABLE_MARK), kernel.preemption, strict=True))
            macros |= {"PREEMPT_DISABLE": _DISABLE_MARK, "PREEMPT_ENABLE": _ENABLE_MARK}
        try:
            super().__init__(source, kernel, handlers, {**constants, **macros}, callable_functions=callable_functions)
        except UnavailableError:
            self._detach()
            raise

    def close(self) -> None:
        """Detach all functions."""
        self._detach()
        super().close()

    def _attach(self, kernel: Kernel, tracepoint: str, handler: str) -> int:
        loaded = _load(handler, self._bpf.dump_func(handler), kernel.probe_types[tracepoint], self._functions)
        self._descriptors[handler] = loaded
        self._links.append(_attach(loaded))
        return loaded

    def _detach(self) -> None:
        for descriptor in (*self._links, *self._descriptors.values()):
            os.close(descriptor)
        self._links.clear()
        self._descriptors.clear()


def _load(name: str, code: bytes, probe_type: int, functions: Mapping[int, int]) -> int:
    """Return a descriptor of the loaded program; OSError when the kernel refuses, with the end of what it says."""
    code = _link(code, functions)
    instructions, license_ = ctypes.create_string_buffer(code, len(code)), ctypes.create_string_buffer(b"GPL")
    attributes = bytearray(144)
    pointers = ctypes.addressof(instructions), ctypes.addressof(license_)
    struct.pack_into("<2I2Q", attributes, 0, _TRACING, len(code) // _INSTRUCTION.size, *pointers)
    struct.pack_into("15s", attributes, 48, name.encode())
    struct.pack_into("<I", attributes, 68, _RAW_TRACEPOINT)
    struct.pack_into("<I", attributes, 108, probe_type)
    try:
        return call_bpf(_PROG_LOAD, attributes)
    except OSError as refusal:
        raise OSError(refusal.errno, f"{name}: {refusal.strerror}: {_ask_why(attributes)}") from refusal


def _ask_why(attributes: bytearray) -> str:
    log = ctypes.create_string_buffer(_LOG_BYTES)
    struct.pack_into("<2IQ", attributes, 24, 1, _LOG_BYTES, ctypes.addressof(log))
    with contextlib.suppress(OSError):  # it is what we want to know about
        os.close(call_bpf(_PROG_LOAD, attributes))
    return " ".join(log.value.decode(errors="replace").strip().splitlines()[-3:])


def _attach(program: int) -> int:
    """Attach a program to its tracepoint until the returned descriptor is closed."""
    return call_bpf(_RAW_TRACEPOINT_OPEN, bytearray(struct.pack("<QIIQ", 0, program, 0, 0)))


def _link(code: bytes, functions: Mapping[int, int]) -> bytes:
    """Return the code with calls of these numbers made calls of functions of the kernel, by their ids."""
    linked = bytearray(code)
    for offset in range(0, len(code), _INSTRUCTION.size):
        *call, number = _INSTRUCTION.unpack_from(code, offset)
        if call == [_CALL, 0, 0] and number in functions:
            _INSTRUCTION.pack_into(linked, offset, _CALL, _CALL_KERNEL, 0, functions[number])
    return bytes(linked)
