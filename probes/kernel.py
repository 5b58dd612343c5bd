"""What the BPF program must know of the running kernel, and the directory that bcc compiles it in.

Offsets come from BTF, also where headers are installed (those of another version compile and read garbage). Without BTF
headers of exactly this version are used through bcc's normal path; without either there is nothing to be had. Kernels
before 5.12 lack members and atomic operations that the program needs.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from btf import BTF_FILE, Btf

__all__ = ["Kernel", "UnavailableError", "compile_environment", "describe_kernel"]


class UnavailableError(Exception):
    """The monitor cannot work on this machine; the message says why."""


@dataclass(frozen=True)
class Kernel:
    """C text with this kernel's facts, and the tracepoints it has with the index of the argument we want."""

    prelude: str
    tracepoints: dict[str, int]
    has_btf: bool


@dataclass(frozen=True)
class _Member:
    struct: str
    path: str
    size: int
    since: str | None = None  # version from which an optional member exists, for kernels without BTF
    until: str | None = None

    @property
    def name(self) -> str:
        return f"{self.struct}__{self.path.rsplit('.', 1)[-1].lstrip('_')}"

    @property
    def is_optional(self) -> bool:
        return bool(self.since or self.until)


_START = [  # what every event needs, in the kernel's order
    _Member("request", "q", 8),
    _Member("request", "mq_hctx", 8),
    _Member("request", "cmd_flags", 4),
    _Member("request", "tag", 4),
    _Member("request", "internal_tag", 4),
    _Member("request", "__data_len", 4),
    _Member("request", "__sector", 8),
    _Member("request", "bio", 8),
]
_MEMBERS = [
    *_START,
    _Member("request", "start_time_ns", 8),
    _Member("request", "rq_disk", 8, until="5.17"),
    _Member("request_queue", "disk", 8, since="5.15"),
    _Member("blk_mq_hw_ctx", "queue_num", 4),
    _Member("gendisk", "major", 4),
    _Member("gendisk", "first_minor", 4),
    _Member("gendisk", "queue", 8),
    _Member("block_device", "bd_disk", 8),
    _Member("bio", "bi_bdev", 8),
    _Member("bio", "bi_opf", 4),
    _Member("bio", "bi_io_vec", 8),
    _Member("bio", "bi_iter.bi_idx", 4),
    _Member("bio", "bi_iter.bi_size", 4),
    _Member("bio_vec", "bv_page", 8),
    _Member("page", "compound_head", 8, until="7.2"),
    _Member("page", "mapping", 8),
    _Member("address_space", "host", 8),
    _Member("inode", "i_ino", 8),
    _Member("inode", "i_mode", 2),
    _Member("task_struct", "flags", 4),
]
#: Tracepoint -> struct that the interesting argument points to.
_TRACEPOINTS = {
    "block_io_start": "request",
    "block_rq_issue": "request",
    "block_rq_complete": "request",
    "block_rq_requeue": "request",
    "block_getrq": "bio",
    "block_bio_frontmerge": "bio",
    "writeback_dirty_folio": "folio",
    "writeback_dirty_page": "page",
}
_STUB_HEADERS = [
    *(f"linux/{name}.h" for name in ("version", "log2", "ptrace", "bpf", "bpf_common", "stddef", "types")),
    *(f"uapi/linux/{name}.h" for name in ("bpf", "bpf_common", "if_packet", "if_ether", "ptrace", "types", "stddef")),
    "asm/page.h",
]
_STUB_TYPES = """
#define CONFIG_BPF_SYSCALL 1
#define KERNEL_VERSION(a, b, c) (((a) << 16) + ((b) << 8) + ((c) > 255 ? 255 : (c)))
typedef signed char __s8, s8; typedef unsigned char __u8, u8;
typedef short __s16, s16; typedef unsigned short __u16, u16, __be16, __le16, __sum16;
typedef int __s32, s32; typedef unsigned int __u32, u32, __be32, __le32, __wsum;
typedef long long __s64, s64; typedef unsigned long long __u64, u64, __be64, __le64;
typedef unsigned long long __aligned_u64 __attribute__((aligned(8)));
typedef unsigned long size_t, uintptr_t; typedef _Bool bool; typedef int pid_t;
#define true 1
#define false 0
#define NULL ((void *)0)
#define __always_inline inline __attribute__((always_inline))
#define PAGE_SHIFT 12
#define LINUX_VERSION_CODE KERNEL_VERSION(%s)
"""


def describe_kernel(tracepoints_to_ignore: frozenset[str] = frozenset()) -> Kernel:
    """Look at the running kernel; UnavailableError when neither BTF nor matching headers tell its structs.

    `tracepoints_to_ignore` makes a newer kernel look like an older one, which is how the older path is tested.
    """
    if BTF_FILE.exists():
        btf = Btf(BTF_FILE.read_bytes())
        found = {name: btf.list_tracepoint_arguments(name) for name in _TRACEPOINTS}
        points = {name: types.index(_TRACEPOINTS[name]) for name, types in found.items() if types is not None}
        members = _describe_members(btf)
    else:
        _require_headers()
        points, members = _list_tracepoints_by_symbol(), _describe_members_by_header()
    points = {name: index for name, index in points.items() if name not in tracepoints_to_ignore}
    dirty = points.get("writeback_dirty_folio", points.get("writeback_dirty_page"))  # renamed in 5.18
    lines = [f"#define ARG_{name} {index}\n#define HAVE_{name} 1" for name, index in points.items()]
    lines += [f"#define ARG_writeback_dirty {dirty}"]
    return Kernel("\n".join(members + lines) + "\n", points, BTF_FILE.exists())


def _describe_members(btf: Btf) -> list[str]:
    lines, ends = [], {}
    for member in _MEMBERS:
        try:
            offset, size = btf.find_member(member.struct, member.path)
        except KeyError as missing:
            if member.is_optional:
                continue
            raise UnavailableError(f"this kernel has no {missing.args[0]}, which the probe reads") from missing
        if size != member.size:
            raise UnavailableError(
                f"{member.struct}.{member.path} has {size} bytes in this kernel, expected {member.size}"
            )
        lines.append(f"#define {member.name} {offset}\n#define HAVE_{member.name} 1")
        ends[member] = offset + size
    start = max(ends[member] for member in _START)
    whole = max(end for member, end in ends.items() if member.struct == "request")
    lines += [f"#define request__START_END {-start // 8 * -8}", f"#define request__END {-whole // 8 * -8}"]
    lines += [f"#define bio_vec__END {btf.get_struct_size('bio_vec')}"]
    for enum in ("req_op", "req_opf", "req_flag_bits"):  # req_opf until 6.0
        lines += [f"#define {name} {value}" for name, value in btf.list_enumerators(enum).items()]
    return lines


def _require_headers() -> None:
    release = os.uname().release
    stamp = Path("/lib/modules", release, "build/include/generated/utsrelease.h")
    if not stamp.exists() or f'"{release}"' not in stamp.read_text():
        raise UnavailableError(f"no {BTF_FILE} and no kernel headers of exactly {release} under /lib/modules")


def _describe_members_by_header() -> list[str]:
    lines = [f"#include <linux/{name}.h>" for name in ("blk-mq", "blkdev", "fs", "sched")]
    for member in _MEMBERS:
        conditions = [f"LINUX_VERSION_CODE >= {_version_code(member.since)}"] if member.since else []
        conditions += [f"LINUX_VERSION_CODE < {_version_code(member.until)}"] if member.until else []
        lines += [f"#if {' && '.join(conditions) or 1}"]
        lines += [f"#define {member.name} offsetof(struct {member.struct}, {member.path})"]
        lines += [f"#define HAVE_{member.name} 1", "#endif"]
    return [
        *lines,
        "#define request__START_END (offsetof(struct request, bio) + 8)",
        "#define request__END (offsetof(struct request, start_time_ns) + 8)",
        "#define bio_vec__END sizeof(struct bio_vec)",
    ]


def _version_code(version: str) -> str:
    return f"KERNEL_VERSION({version.replace('.', ',')},0)"


def _list_tracepoints_by_symbol() -> dict[str, int]:
    symbols = Path("/proc/kallsyms").read_text()
    return {name: 0 for name in _TRACEPOINTS if f" __tracepoint_{name}\n" in symbols}  # comes first since 5.11


def _get_version() -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", os.uname().release)
    if numbers is None:
        raise UnavailableError(f"cannot tell the kernel's version from {os.uname().release!r}")
    return tuple(int(number or 0) for number in numbers.groups())


@contextmanager
def compile_environment(kernel: Kernel) -> Iterator[None]:
    """Point bcc to a directory of empty headers, all it needs when offsets come from BTF; removed afterwards."""
    if not kernel.has_btf:
        yield
        return
    with tempfile.TemporaryDirectory(prefix="knobscope-kernel-") as directory:
        include = Path(directory, "include")
        for header in _STUB_HEADERS:
            (include / header).parent.mkdir(parents=True, exist_ok=True)
            (include / header).touch()
        version = ",".join(str(number) for number in _get_version())
        (include / "linux/kconfig.h").write_text(_STUB_TYPES % version)
        os.environ["BCC_KERNEL_SOURCE"] = directory
        try:
            yield
        finally:
            del os.environ["BCC_KERNEL_SOURCE"]
