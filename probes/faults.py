"""Page faults of the followed processes on mapped files: which offsets fault in, are dirtied and written back."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from calls import define_registers, list_registers
from file_of import BYTES_DONE, FAULT_MEMBERS, FILE_HEAD, FILE_MEMBERS, PAGE_HEAD, allow_devices, make_file_row
from followed import FOLLOWED_HEADERS, FOLLOWED_MEMBERS, FOLLOWED_TRACEPOINTS, Group
from kernel import Kernel, Member, Needs, UnavailableError, read_kernel
from patterns import summarise_pattern
from probe import Probe, Selection
from program import Program, count_missed

Row = dict[str, Any]

_SOURCE = Path(__file__).resolve().with_name("pagefault.bpf.c")
_PAGE_BYTES = 4096
_REGION_BYTES = 1 << 20  # as in the program
_LOSSES = ("files", "regions")  # as the enum in the program
_HANDLERS = {
    "mm_filemap_fault": "on_fault",
    "mm_filemap_add_to_page_cache": "on_add",
    "writeback_dirty_folio": "on_dirty",
    "block_bio_queue": "on_bio",
}
_LIMITS = {
    "mm_filemap_fault": "page faults are not seen, only pages that they dirty (since Linux 6.12)",
    "mm_filemap_add_to_page_cache": "pages that faults bring in are not seen",
    "block_bio_queue": "pages of mapped files that are written back are not seen",
}
_BIO_MEMBERS = (
    Member("bio", "bi_bdev", 8),
    Member("bio", "bi_opf", 4),
    Member("bio", "bi_io_vec", 8),
    Member("bio", "bi_iter.bi_idx", 4),
    Member("bio", "bi_iter.bi_size", 4),
    *BYTES_DONE,
    Member("bio_vec", "bv_page", 8),
    Member("bio_vec", "bv_offset", 4),
    Member("super_block", "s_bdev", 8),
)


class FaultProbe(Probe):
    """Counts in the kernel, of one cgroup at a time."""

    def __init__(self, selection: Selection) -> None:
        machine = platform.machine()
        kernel = _choose_tracepoints(read_kernel(_state_needs(machine)))
        self.limits = [sentence for point, sentence in _LIMITS.items() if point not in kernel.tracepoints]
        self._has = {handler: point in kernel.tracepoints for point, handler in _HANDLERS.items()}
        kernel = replace(kernel, prelude=kernel.prelude + define_registers(machine))
        constants = {"ONE_DEVICE": int(bool(selection.devices))}
        self._program = Program(_SOURCE, kernel, _HANDLERS, constants, {})
        allow_devices(self._program, selection.devices)

    def start(self, groups: Sequence[Group]) -> None:
        """Clear all counters and count for these cgroups, and those below, from now on."""
        self._program.clear("files", "regions", "losses")
        self._program.start_costs()
        self._program.follow(groups)
        self._configure(is_following=bool(groups))

    def pause(self) -> None:
        """Count nothing any more."""
        self._configure(is_following=False)

    def stop(self) -> Row:
        """Return the mapped files of the run, and which regions of them were worked on."""
        self._program.follow(())
        costs = self._program.list_costs()
        files = [(key, file, make_file_row(key, file.about)) for key, file in self._program["files"].items()]
        rows = [about | self._summarise_file(file) for _, file, about in files]
        names = {_identify(key): about for key, _, about in files}
        regions = [
            names[_identify(key.file)] | {"offset": key.number * _REGION_BYTES} | self._summarise_sums(sums)
            for key, sums in self._program["regions"].items()
        ]
        lost = {name: sum(self._program.get("losses", reason)) for reason, name in enumerate(_LOSSES)}
        return {
            "faults": sorted(rows, key=lambda row: (-(row["faults"] or 0), row["name"])),
            "fault_regions": sorted(regions, key=lambda row: (row["device"], row["inode"], row["offset"])),
            "lost_faults": lost | {"missed_events": count_missed(costs)},
            "fault_programs": costs,
        }

    def _configure(self, *, is_following: bool) -> None:
        self._program.put("config", 0, self._program["config"].Leaf(is_following))

    def _summarise_sums(self, sums: Any) -> Row:
        """Return sums; None is what this kernel does not show."""
        brought_in = sums.brought_in if self._has["on_fault"] and self._has["on_add"] else None
        return {
            "faults": sums.faults if self._has["on_fault"] else None,
            "pages_in": _count_pages(brought_in),
            "bytes_in": brought_in,
            "pages_dirtied": _count_pages(sums.dirtied if self._has["on_dirty"] else None),
            "pages_written_back": _count_pages(sums.written_back if self._has["on_bio"] else None),
        }

    def _summarise_file(self, file: Any) -> Row:
        pattern = summarise_pattern(file.pattern, is_write=False)
        return self._summarise_sums(file.sums) | (pattern if self._has["on_fault"] else dict.fromkeys(pattern))


def _identify(key: Any) -> tuple[int, int, int]:
    return key.device, key.inode, key.name


def _count_pages(size: int | None) -> int | None:
    return None if size is None else size // _PAGE_BYTES


def _state_needs(machine: str) -> Needs:
    return Needs(
        members=(*list_registers(machine), *FILE_MEMBERS, *FAULT_MEMBERS, *FOLLOWED_MEMBERS, *_BIO_MEMBERS),
        tracepoints={
            "mm_filemap_fault": "address_space",
            "mm_filemap_add_to_page_cache": "folio",
            "writeback_dirty_folio": "folio",
            "block_bio_queue": "bio",
            **FOLLOWED_TRACEPOINTS,
        },
        heads={"inode__HEAD": FILE_HEAD, "page__HEAD": PAGE_HEAD},
        sizes=("bio_vec", "page"),
        enums=("pageflags",),
        headers=("fs", "blkdev", "sched", "ptrace", "mm", *FOLLOWED_HEADERS),
    )


def _choose_tracepoints(kernel: Kernel) -> Kernel:
    """Leave out what this kernel shows only in part."""
    points = dict(kernel.tracepoints)
    if "mm_filemap_fault" not in points:  # since 6.12
        points.pop("mm_filemap_add_to_page_cache", None)
    if not points.keys() & {"mm_filemap_fault", "writeback_dirty_folio"}:
        raise UnavailableError("this kernel has neither of the tracepoints mm_filemap_fault and writeback_dirty_folio")
    return replace(kernel, tracepoints=points)
