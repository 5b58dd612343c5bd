"""Which file it is: what file_of.bpf.h reads of the kernel, and its keys as rows."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from kernel import Member
from program import Program

_MINOR_BITS = 20  # of the kernel's own device numbers; what stat shows is encoded otherwise

#: Read in one go.
FILE_HEAD = (
    Member("inode", "i_mode", 2),
    Member("inode", "i_sb", 8),
    Member("inode", "i_ino", 8),
    Member("inode", "i_rdev", 4),
)
#: What leads from an inode to its name.
NAME_MEMBERS = (
    Member("inode", "i_dentry.first", 8),
    Member("dentry", "d_name.name", 8),
    Member("dentry", "d_name.hash", 4),
    Member("dentry", "d_u.d_alias", 16, since="3.19", until="7.2"),
    Member("dentry", "d_alias", 16, since="7.2"),
)
#: What leads from a page to its folio; read in one go.
PAGE_HEAD = (
    Member("page", "compound_head", 8, until="7.2"),
    Member("page", "compound_info", 8, since="7.2"),
)
#: What folio.bpf.h also reads; struct folio exists since 5.16.
FOLIO_MEMBERS = (
    Member("folio", "flags", 8, since="5.16"),
    Member("folio", "_folio_nr_pages", 4, since="5.18", until="6.15"),
    Member("folio", "_nr_pages", 4, since="6.15"),
)
#: How much of the first element of a bio's vector lies before its first byte: one member, which 7.3 named anew.
BYTES_DONE = (
    Member("bio", "bi_iter.bi_bvec_done", 4, since="3.14", until="7.3"),
    Member("bio", "bi_iter.bi_offset", 4, since="7.3"),
)
#: What file_of.bpf.h reads.
FILE_MEMBERS = (
    *FILE_HEAD,
    Member("inode", "i_generation", 4),
    Member("super_block", "s_dev", 4),
    Member("file", "f_inode", 8),
    Member("task_struct", "files", 8),
    Member("files_struct", "fdt", 8),
    Member("fdtable", "max_fds", 4),
    Member("fdtable", "fd", 8),
    *NAME_MEMBERS,
)
#: What fault.bpf.h reads.
FAULT_MEMBERS = (
    Member("task_struct", "min_flt", 8),
    Member("task_struct", "maj_flt", 8),
    Member("address_space", "host", 8),
    Member("folio", "mapping", 8, since="5.16"),
    Member("folio", "index", 8, since="5.16"),
    *PAGE_HEAD,
    *FOLIO_MEMBERS,
)


def make_file_row(key: Any, about: Any) -> dict[str, Any]:
    """Return `device` (MAJ:MIN), `inode`, `generation`, `name` (last part of its path); a block device has inode 0."""
    device = f"{key.device >> _MINOR_BITS}:{key.device & (1 << _MINOR_BITS) - 1}"
    text = about.name.decode(errors="replace")
    if not key.inode:
        entry = Path("/sys/dev/block", device)
        text = entry.resolve().name if entry.exists() else text
    return {"device": device, "inode": int(key.inode), "generation": int(about.generation), "name": text}


def allow_devices(program: Program, devices: Iterable[str]) -> None:
    """Let only files on these devices (MAJ:MIN) count."""
    for device in devices:
        program["devices"][number_device(device)] = 1


def number_device(device: str) -> int:
    """Return the kernel's own number of a device (MAJ:MIN)."""
    major, minor = device.split(":")
    return int(major) << _MINOR_BITS | int(minor)
