"""Compiles a BPF program with bcc into what can be kept: its functions, and the maps that they refer to by number."""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Mapping
from typing import Any

from bpf import read_info
from kept import keep
from kernel import Kernel, UnavailableError, compile_environment

#: `maps`: name, shape, types of key and value of each, as bpf.Map takes them; `functions`: name -> code, as hex digits.
Compiled = dict[str, Any]

FLAGS = ["-Wno-macro-redefined", "-Wno-duplicate-decl-specifier"]
_SHAPE = struct.Struct("=I4x5I")  # of struct bpf_map_info: type, sizes, number of elements, flags
_INSTRUCTION = struct.Struct("<BBhi")
_LOAD_MAP = (0x18, 1 << 4)  # opcode; source register that makes the number the descriptor of a map


def compile_program(text: str, kernel: Kernel) -> Compiled:
    """Return the compiled text, kept for this build of the kernel or made now; UnavailableError when bcc refuses."""
    made_of = (kernel.build, text, *FLAGS)
    compiled: Compiled = keep("program", made_of, lambda: _compile(text, kernel), is_kept=bool(kernel.build))
    return compiled


def place(code: bytes, numbers: Mapping[int, int]) -> bytes:
    """Return code with each number of a map, or its descriptor, replaced by another one."""
    placed = bytearray(code)
    for offset in range(0, len(code), _INSTRUCTION.size):
        opcode, registers, middle, number = _INSTRUCTION.unpack_from(code, offset)
        if (opcode, registers & 0xF0) == _LOAD_MAP:
            _INSTRUCTION.pack_into(placed, offset, opcode, registers, middle, numbers[number])
    return bytes(placed)


def _compile(text: str, kernel: Kernel) -> Compiled:
    try:
        from bcc import BPF, lib  # noqa: PLC0415 - its absence is an answer, not a crash
    except ImportError as missing:
        raise UnavailableError(
            f"no bcc for the system's Python ({missing}); Debian's package is python3-bpfcc"
        ) from missing
    lib.bpf_num_tables.restype, lib.bpf_num_tables.argtypes = ctypes.c_size_t, [ctypes.c_void_p]
    lib.bpf_table_name.restype, lib.bpf_table_name.argtypes = ctypes.c_char_p, [ctypes.c_void_p, ctypes.c_size_t]
    try:
        with compile_environment(kernel):
            module = BPF(text=text, cflags=FLAGS)
    except Exception as failure:  # bcc raises nothing narrower
        raise UnavailableError(f"BPF is not available: {failure}") from failure
    try:
        names = [lib.bpf_table_name(module.module, number) for number in range(lib.bpf_num_tables(module.module))]
        descriptors = [lib.bpf_table_fd(module.module, name) for name in names]
        numbers = {descriptor: number for number, descriptor in enumerate(descriptors)}
        functions = [lib.bpf_function_name(module.module, i) for i in range(lib.bpf_num_functions(module.module))]
        return {
            "maps": [
                (name.decode(), _read_shape(descriptor), *_describe_types(lib, module.module, name))
                for name, descriptor in zip(names, descriptors, strict=True)
            ],
            "functions": {name.decode(): place(module.dump_func(name), numbers).hex() for name in functions},
        }
    finally:
        module.cleanup()


def _read_shape(descriptor: int) -> list[int]:
    """Return type, sizes of key and value, number of elements and flags."""
    kind, *numbers = _SHAPE.unpack_from(read_info(descriptor))
    return [kind, *numbers[:4]]


def _describe_types(lib: Any, module: Any, name: bytes) -> tuple[str, str]:
    return lib.bpf_table_key_desc(module, name).decode(), lib.bpf_table_leaf_desc(module, name).decode()
