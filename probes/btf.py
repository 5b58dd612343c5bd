"""Reads the running kernel's own type information (BTF): offsets, enumerators, tracepoint arguments.

BTF is exact for this kernel; headers of another version compile and then read garbage silently. Format:
https://docs.kernel.org/bpf/btf.html
"""

from __future__ import annotations

import struct
from collections.abc import Mapping, Sequence
from itertools import accumulate
from pathlib import Path

BTF_FILE = Path("/sys/kernel/btf/vmlinux")

(_INT, _PTR, _ARRAY, _STRUCT, _UNION, _ENUM, _FWD, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _FUNC) = range(1, 13)
(_FUNC_PROTO, _VAR, _DATASEC, _FLOAT, _DECL_TAG, _TYPE_TAG, _ENUM64) = range(13, 20)
_TRANSPARENT = {_TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _TYPE_TAG}
#: Bytes that follow a record: (fixed, per element).
_TAIL = dict.fromkeys((_PTR, _FWD, _TYPEDEF, _VOLATILE, _CONST, _RESTRICT, _FUNC, _FLOAT, _TYPE_TAG), (0, 0))
_TAIL |= {_INT: (4, 0), _VAR: (4, 0), _DECL_TAG: (4, 0), _ARRAY: (12, 0), _ENUM: (0, 8), _FUNC_PROTO: (0, 8)}
_TAIL |= dict.fromkeys((_STRUCT, _UNION, _DATASEC, _ENUM64), (0, 12))


class Btf:
    """Type information of one kernel; ValueError when the data are not BTF that we understand.

    That of a module is based on the kernel's: its numbers of types and offsets of strings go on where those end.
    """

    def __init__(self, data: bytes, base: Btf | None = None) -> None:
        magic, _, _, header, type_start, type_length, string_start, string_length = struct.unpack_from(
            "<HBBIIIII", data, 0
        )
        if magic != 0xEB9F:
            raise ValueError(f"BTF magic is {magic:#x}, expected 0xeb9f (little endian)")
        self._types: bytes = base._types if base else b""
        self._strings: bytes = base._strings if base else b""
        self._positions: list[int] = list(base._positions) if base else [0]  # type ids count from 1
        self._named: dict[tuple[int, int], int] = dict(base._named) if base else {}
        begin = len(self._types)
        self._types += data[header + type_start : header + type_start + type_length]
        self._strings += data[header + string_start : header + string_start + string_length]
        self._index(begin)

    def _index(self, position: int) -> None:
        types, unpack = self._types, struct.Struct("<III").unpack_from
        while position < len(types):
            name, info, _ = unpack(types, position)
            kind = info >> 24 & 31
            if kind not in _TAIL:
                raise ValueError(f"BTF type kind {kind} is unknown, its length too")
            if name and kind in (_STRUCT, _ENUM, _ENUM64, _TYPEDEF, _FUNC):
                self._named.setdefault((kind, name), len(self._positions))
            self._positions.append(position)
            fixed, each = _TAIL[kind]
            position += 12 + fixed + each * (info & 0xFFFF)

    def _record(self, type_id: int) -> tuple[int, int, int, int, int]:
        """Return name offset, kind, number of elements, size or type, and where the tail begins."""
        position = self._positions[type_id]
        name, info, size = struct.unpack_from("<III", self._types, position)
        return name, info >> 24 & 31, info & 0xFFFF, size, position + 12

    def _strip(self, type_id: int) -> int:
        while type_id and (record := self._record(type_id))[1] in _TRANSPARENT:
            type_id = record[3]
        return type_id

    def _string(self, offset: int) -> str:
        return self._strings[offset : self._strings.index(b"\0", offset)].decode()

    def _find(self, kind: int, name: str) -> int:
        """Return the type's id, 0 when there is none of that name."""
        offset = self._strings.find(b"\0" + name.encode() + b"\0")
        return self._named.get((kind, offset + 1), 0) if offset >= 0 else 0

    def _elements(self, type_id: int) -> list[tuple[int, ...]]:
        _, kind, count, _, tail = self._record(type_id)
        size = _TAIL[kind][1]
        form = f"<{size // 4}I"
        return [struct.unpack_from(form, self._types, tail + i * size) for i in range(count)]

    def _size(self, type_id: int) -> int:
        type_id = self._strip(type_id)
        _, kind, _, size, tail = self._record(type_id)
        if kind == _PTR:
            return 8
        if kind == _ARRAY:
            element, _, count = struct.unpack_from("<III", self._types, tail)
            return int(count) * self._size(element)
        return size

    def _search(self, type_id: int, member: str) -> tuple[int, int, int] | None:
        """Find a member, also inside anonymous structs and unions.

        Return its offset in bits, its type and, of a bit-field, its width in bits.
        """
        is_packed = struct.unpack_from("<I", self._types, self._positions[type_id] + 4)[0] >> 31
        for name, element, bits in self._elements(type_id):
            offset, width = (bits & 0xFFFFFF, bits >> 24) if is_packed else (bits, 0)
            if name and self._string(name) == member:
                return offset, self._strip(element), width
            inner = self._strip(element)
            if not name and self._record(inner)[1] in (_STRUCT, _UNION):
                nested = self._search(inner, member)
                if nested:
                    return nested[0] + offset, *nested[1:]
        return None

    def find_member(self, struct_name: str, path: str) -> tuple[int, int]:
        """Return offset and size in bytes of a member (dots lead into embedded structs); KeyError when missing."""
        type_id, offset = self._find(_STRUCT, struct_name), 0
        if not type_id:
            raise KeyError(f"struct {struct_name}")
        for name in path.split("."):
            match = self._search(type_id, name)
            if match is None:
                raise KeyError(f"{struct_name}.{path}")
            bits, type_id, width = match
            if width or bits % 8:
                raise KeyError(f"{name} is a bit-field")
            offset += bits // 8
        return offset, self._size(type_id)

    def find_bit(self, struct_name: str, member: str) -> tuple[int, int]:
        """Return the offset in bytes and the mask in that byte of a bit-field of one bit; KeyError when missing."""
        type_id = self._find(_STRUCT, struct_name)
        match = self._search(type_id, member) if type_id else None
        if match is None or match[2] != 1:
            raise KeyError(f"bit-field {struct_name}.{member}")
        return match[0] // 8, 1 << match[0] % 8

    def get_struct_size(self, name: str) -> int:
        """Return the size of a struct in bytes; KeyError when missing."""
        type_id = self._find(_STRUCT, name)
        if not type_id:
            raise KeyError(f"struct {name}")
        return self._size(type_id)

    def find_struct(self, name: str) -> int:
        """Return the type's id, by which the kernel knows it; 0 when there is no such struct."""
        return self._find(_STRUCT, name)

    def find_function(self, name: str) -> int:
        """Return the id of a function that BPF programs may call; 0 when this kernel has none of that name."""
        return self._find(_FUNC, name)

    def find_tracepoint(self, name: str) -> int:
        """Return the id of the type of a tracepoint's probes; 0 when there is no such tracepoint."""
        return self._find(_TYPEDEF, f"btf_trace_{name}")

    def list_enumerators(self, name: str) -> dict[str, int]:
        """Return names and values of an enum; empty when there is none of that name."""
        type_id = self._find(_ENUM, name) or self._find(_ENUM64, name)
        if not type_id:
            return {}
        return {self._string(element[0]): element[1] for element in self._elements(type_id)}

    def list_tracepoint_arguments(self, tracepoint: str) -> list[str] | None:
        """Return for each argument the struct it points to ("" for others); None when there is no such tracepoint."""
        pointer = self._strip(self.find_tracepoint(tracepoint))
        if not pointer:
            return None
        prototype = self._record(pointer)[3]
        return [self._pointed_struct(kind) for _, kind in self._elements(prototype)[1:]]  # the first is the probe's own

    def _pointed_struct(self, type_id: int) -> str:
        type_id = self._strip(type_id)
        _, kind, _, target, _ = self._record(type_id) if type_id else (0, 0, 0, 0, 0)
        if kind != _PTR or not (target := self._strip(target)):
            return ""
        name, kind, *_ = self._record(target)
        return self._string(name) if kind in (_STRUCT, _FWD) else ""


def make_types(functions: Sequence[str], sizes: Mapping[str, int]) -> tuple[bytes, dict[str, int]]:
    """Return BTF of functions `int name()` and of global functions `int name(struct of this size *)`, and their ids.

    The kernel checks a global function by its types alone, once, and believes its callers to get any number from it.
    """
    names = ["", "int", "value", *functions, *sizes]
    _, integer, value, *texts = accumulate((len(name) + 1 for name in names), initial=0)
    types: list[tuple[int, ...]] = [(integer, _INT << 24, 4, 1 << 24 | 32), (0, _FUNC_PROTO << 24, 1)]
    ids = {}
    for name, text in zip((*functions, *sizes), texts, strict=False):
        prototype = 2
        if name in sizes:
            types += [(value, _STRUCT << 24, sizes[name]), (0, _PTR << 24, len(types) + 1)]
            types += [(0, _FUNC_PROTO << 24 | 1, 1, value, len(types))]
            prototype = len(types)
        types += [(text, _FUNC << 24 | int(name in sizes), prototype)]
        ids[name] = len(types)
    records = b"".join(struct.pack(f"<{len(record)}I", *record) for record in types)
    strings = "".join(f"{name}\0" for name in names).encode()
    header = struct.pack("<HBBIIIII", 0xEB9F, 1, 0, 24, 0, len(records), len(records), len(strings))
    return header + records + strings, ids
