"""The system call bpf(2), and the maps that programs share with user space: made, read and written without bcc."""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import platform
import struct
from collections.abc import Iterator
from functools import lru_cache
from pathlib import Path
from typing import Any

_SYSCALL = {"x86_64": 321, "aarch64": 280}
_CREATE, _LOOKUP, _UPDATE, _DELETE, _GET_INFO = 0, 1, 2, 3, 15
_LOOKUP_BATCH, _TAKE_BATCH, _UPDATE_BATCH = 24, 25, 26
_ARRAY, _PER_CPU_ARRAY = 2, 6
_POSSIBLE = Path("/sys/devices/system/cpu/possible")
_LIBC = ctypes.CDLL(None, use_errno=True)
#: What bcc calls a type of C -> ctypes.
_SCALARS: dict[str, Any] = {
    "_Bool": ctypes.c_bool,
    "char": ctypes.c_char,
    "signed char": ctypes.c_byte,
    "unsigned char": ctypes.c_ubyte,
    "short": ctypes.c_short,
    "unsigned short": ctypes.c_ushort,
    "int": ctypes.c_int,
    "unsigned int": ctypes.c_uint,
    "long": ctypes.c_long,
    "unsigned long": ctypes.c_ulong,
    "long long": ctypes.c_longlong,
    "unsigned long long": ctypes.c_ulonglong,
}


def call_bpf(command: int, attributes: bytearray) -> int:
    """Make the system call bpf; the kernel writes its answer into the attributes, too. OSError when it refuses."""
    number = _SYSCALL.get(platform.machine())
    if number is None:
        raise OSError(f"the number of the system call bpf is not known on {platform.machine()}")
    buffer = (ctypes.c_char * len(attributes)).from_buffer(attributes)
    result = _LIBC.syscall(number, command, buffer, len(attributes))
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return int(result)


def read_info(descriptor: int) -> bytes:
    """Return what the kernel says of a program or map: struct bpf_prog_info or bpf_map_info."""
    info = ctypes.create_string_buffer(256)
    call_bpf(_GET_INFO, bytearray(struct.pack("<IIQ", descriptor, len(info), ctypes.addressof(info))))
    return info.raw


class Map:
    """A map of the kernel. `Key` and `Leaf` are the types of its elements; a `Leaf` per CPU is an array of them.

    `shape`: its type, sizes of key and value, number of elements and flags, as in struct bpf_map_info; `key`, `leaf`:
    bcc's descriptions of the types. Where they are numbers, elements are plain numbers.
    """

    def __init__(self, name: str, shape: list[int], key: str, leaf: str) -> None:
        self.kind, key_bytes, self.leaf_bytes, self._length, flags = shape
        self.Key, self.Leaf = _make_type(json.loads(key)), _make_type(json.loads(leaf))
        if self.kind == _PER_CPU_ARRAY:
            self.Leaf = self.Leaf * _count_processors()
        attributes = bytearray(72)
        struct.pack_into("<5I", attributes, 0, self.kind, key_bytes, self.leaf_bytes, self._length, flags)
        struct.pack_into("15s", attributes, 28, name.encode())
        self.map_fd = call_bpf(_CREATE, attributes)

    def __len__(self) -> int:
        """Return how many elements there may be."""
        return self._length

    def __getitem__(self, key: Any) -> Any:
        """Return an element; KeyError when there is none."""
        leaves = (self.Leaf * 1)()
        self._do(_LOOKUP, key, leaves)
        return leaves[0]

    def __setitem__(self, key: Any, leaf: Any) -> None:
        """Write an element."""
        self._do(_UPDATE, key, leaf if isinstance(leaf, self.Leaf) else self.Leaf(leaf))

    def __delitem__(self, key: Any) -> None:
        """Remove an element; KeyError when there is none."""
        self._do(_DELETE, key)

    def items(self) -> Iterator[tuple[Any, Any]]:
        """Return keys and values."""
        return self._read(_LOOKUP_BATCH)

    def take(self) -> Iterator[tuple[Any, Any]]:
        """Return keys and values of a hash, and remove them."""
        return self._read(_TAKE_BATCH)

    def clear(self) -> None:
        """Zero all elements of an array, remove those of a hash."""
        if self.kind in (_ARRAY, _PER_CPU_ARRAY):
            keys, zeros = (self.Key * self._length)(*range(self._length)), (self.Leaf * self._length)()
            self._batch(_UPDATE_BATCH, (0, 0), keys, zeros)
        else:
            self.take()

    def close(self) -> None:
        """Let go of it; loaded programs hold it themselves."""
        os.close(self.map_fd)

    def _do(self, command: int, key: Any, leaf: Any = None) -> None:
        key = key if isinstance(key, self.Key) else self.Key(key)
        address = 0 if leaf is None else ctypes.addressof(leaf)
        try:
            call_bpf(command, bytearray(struct.pack("<IIQQQ", self.map_fd, 0, ctypes.addressof(key), address, 0)))
        except FileNotFoundError as missing:
            raise KeyError(key) from missing

    def _read(self, command: int) -> Iterator[tuple[Any, Any]]:
        keys, leaves = (self.Key * self._length)(), (self.Leaf * self._length)()
        position = ctypes.c_uint64()  # as the kernel likes to note it
        count = self._batch(command, (0, ctypes.addressof(position)), keys, leaves)
        return zip(keys[:count], leaves[:count], strict=True)

    def _batch(self, command: int, positions: tuple[int, int], keys: Any, leaves: Any) -> int:
        attributes = bytearray(56)
        places = *positions, ctypes.addressof(keys), ctypes.addressof(leaves)
        struct.pack_into("<4Q2I", attributes, 0, *places, self._length, self.map_fd)
        with contextlib.suppress(FileNotFoundError):  # there were fewer
            call_bpf(command, attributes)
        return int(struct.unpack_from("<I", attributes, 32)[0])


@lru_cache(maxsize=1)
def _count_processors() -> int:
    return int(_POSSIBLE.read_text().strip().rpartition("-")[2].rpartition(",")[2]) + 1


def _make_type(description: Any) -> Any:
    """Return the type that bcc describes: a name, or [name, members, kind] with members [name, type, length]."""
    if isinstance(description, str):
        return _SCALARS[description]
    name, members, *kind = description
    fields: list[tuple[Any, ...]] = []
    unnamed: list[str] = []
    for member, of, *more in members:
        if more and isinstance(more[0], str):  # a struct or union within
            unnamed += [] if member else [f"__unnamed{len(unnamed)}"]
            fields.append((member or unnamed[-1], _make_type([member, of, more[0]])))
        elif more and isinstance(more[0], list):
            fields.append((member, _make_type(of) * more[0][0]))
        else:
            fields.append((member, _make_type(of), *more))
    body = {"_anonymous_": unnamed, "_fields_": fields} | ({"_pack_": 1} if kind == ["struct_packed"] else {})
    return type(name or "_", (ctypes.Union if kind == ["union"] else ctypes.Structure,), body)
