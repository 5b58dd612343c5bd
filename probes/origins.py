"""Reads what the block program counted by file, by address and by submitter, and clears it for the next run."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import dataclass
from typing import Any

from program import Program

_PSEUDO_FILES = ("", "journal", "metadata", "device")  # the first one: unknown
#: Macros of the program: how many it can tell apart.
FILE_CONSTANTS = {"MAX_FILES": 4096, "MAX_ADDRESSES": 65536, "MAX_SUBMITTERS": 1024}
_MINOR_BITS = 20  # of a device number inside the kernel


@dataclass
class FileCounts:
    """A file, or a pseudo file, which has a name only; reads and writes, each with the fields of struct access_t."""

    number: int  # by which a recorded request names it
    name: str
    device: str | None  # MAJ:MIN of its file system
    inode: int | None
    generation: int | None  # tells a file from an earlier one that had the same inode
    access: tuple[Any, Any]


@dataclass
class Origins:
    """Where the requests of a run belong.

    `addresses`: (operation, sector) -> requests, bytes.
    `submitters`: name -> requests and bytes per operation. `overflow`: submissions whose file found no room;
    `unnamed`: names that found none.
    """

    files: list[FileCounts]
    addresses: dict[tuple[int, int], tuple[int, int]]
    submitters: dict[str, list[tuple[int, int]]]
    overflow: int
    unnamed: int


def clear_origins(program: Program) -> None:
    """Forget the files, addresses and submitters of the run before."""
    for number in range(_count_files(program)):
        program.put("files", number, program["files"].Leaf())
    for number in (*range(_count_submitters(program)), len(program["submitted"]) - 1):
        program.put("submitted", number, program["submitted"].Leaf())
    program.clear("recent_submitters")
    for table in ("files_tried", "submitters_tried"):
        program.put(table, 0, 0)
    for table in ("numbers", "addresses", "submitters"):
        _take(program[table])


def read_origins(program: Program) -> Origins:
    """Return what was counted since it was cleared."""
    count = _count_files(program)
    files = [_read_file(number, program.get("files", number)) for number in range(1, count)]
    addresses = {(key.op, key.sector): (value.requests, value.bytes) for key, value in _take(program["addresses"])}
    tried = program.get("files_tried", 0)
    overflow = max(tried - (len(program["files"]) - len(_PSEUDO_FILES)), 0)
    unnamed = max(program.get("submitters_tried", 0) - (len(program["submitted"]) - 1), 0)
    return Origins(files, addresses, _read_submitters(program), overflow, unnamed)


def _count_files(program: Program) -> int:
    tried: int = program.get("files_tried", 0)
    return min(tried + len(_PSEUDO_FILES), len(program["files"]))


def _count_submitters(program: Program) -> int:
    tried: int = program.get("submitters_tried", 0)
    return min(tried, len(program["submitted"]) - 1)


def _take(table: Any) -> list[tuple[Any, Any]]:
    return list(table.take())


def _read_file(number: int, leaf: Any) -> FileCounts:
    access = tuple(leaf.access)
    if number < len(_PSEUDO_FILES):
        return FileCounts(number, _PSEUDO_FILES[number], None, None, None, access)
    device = f"{leaf.device >> _MINOR_BITS}:{leaf.device & ((1 << _MINOR_BITS) - 1)}"
    return FileCounts(
        number, leaf.name.decode(errors="replace"), device, leaf.identity.inode, leaf.identity.generation, access
    )


def _read_submitters(program: Program) -> dict[str, list[tuple[int, int]]]:
    requests: dict[str, Counter[int]] = {}
    sizes: dict[str, Counter[int]] = {}
    names = [(number, _read_name(key)) for key, number in program["submitters"].items()]
    for number, name in [*names, (len(program["submitted"]) - 1, "other")]:
        for cpu in program.get("submitted", number):
            requests.setdefault(name, Counter()).update(dict(enumerate(cpu.requests)))
            sizes.setdefault(name, Counter()).update(dict(enumerate(cpu.bytes)))
    return {name: [(counts[op], sizes[name][op]) for op in range(len(counts))] for name, counts in requests.items()}


def _read_name(leaf: Any) -> str:
    """Return a thread's name without what is different in every run: its number, the process that it works for."""
    name = bytes(leaf.name).split(b"\0")[0].decode(errors="replace")
    if leaf.is_worker:
        return f"kworker/{name}"
    return re.sub(r"^(iou-\w+)-\d+$", r"\1", re.sub(r"^(kworker)/.*", r"\1", name))
