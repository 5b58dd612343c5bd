"""What the BPF program must know of the running kernel, and the directory that bcc compiles it in.

Offsets come from BTF, also where headers are installed (those of another version compile and read garbage). Without BTF
headers of exactly this version are used through bcc's normal path; without either nothing can be compiled. Kernels
before 5.12 lack members and atomic operations that the programs need. Every probe states what it reads (`Needs`).
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Collection, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from pathlib import Path
from typing import Any

from btf import BTF_FILE, Btf
from kept import keep

#: Of directories of empty headers.
_PREFIX = "knobscope-headers-"
_KALLSYMS = Path("/proc/kallsyms")
_BOOT, _MODULES_LOADED = Path("/proc/sys/kernel/random/boot_id"), Path("/proc/modules")
#: Whose types the probes know where they are no part of the kernel itself.
_MODULES = ("btrfs", "dm_mod", "dm_crypt", "md_mod", "raid1", "raid10", "raid456", "bcache")
_WORDS = ("pt_regs",)  # what memory.bpf.h reads words of any struct as: it has nothing but words
_PREEMPTIBLE_SINCE = (7, 0)  # seen in 7.3, not in 6.18: programs of tracepoints run preemptibly


class UnavailableError(Exception):
    """The monitor cannot work on this machine; the message says why."""


@dataclass(frozen=True)
class Kernel:
    """C text with this kernel's facts, and the tracepoints it has with the index of the argument we want.

    `probe_types`: the same tracepoints -> BTF id of their probes' type, `cast`: id of the function that gives a pointer
    a type; empty and 0 where programs cannot be typed. `preemption`: ids of the functions that programs of tracepoints
    switch it off and on with, where the kernel leaves it on for them. `loop`: ids of those that begin, step and end a
    loop whose body the kernel checks once, not once for each time.
    """

    prelude: str
    tracepoints: dict[str, int]
    has_btf: bool
    probe_types: dict[str, int] = field(default_factory=dict)
    cast: int = 0
    preemption: tuple[int, int] | None = None
    loop: tuple[int, int, int] | None = None
    build: str = ""


@dataclass(frozen=True)
class Member:
    """A member of a kernel struct that a probe reads; `path` may lead through embedded structs; `size` 0: any."""

    struct: str
    path: str
    size: int
    since: str | None = None  # version from which an optional member exists, for kernels without BTF
    until: str | None = None
    in_headers: bool = True  # else the struct is private to a source file, and known from BTF only

    @property
    def name(self) -> str:
        """The C macro that holds the offset."""
        return f"{self.struct}__{self.path.rsplit('.', 1)[-1].lstrip('_')}"

    @property
    def is_optional(self) -> bool:
        """Whether the probe can do without it."""
        return bool(self.since or self.until) or not self.in_headers


@dataclass(frozen=True)
class Needs:
    """What a probe reads of the kernel.

    `tracepoints`: name -> struct that the interesting argument points to ("": the first argument). `heads`: macro ->
    members; it becomes the bytes from the struct's begin to the end of the last of them, a multiple of eight.
    `sizes`: structs whose size the probe needs, as <struct>__END, `private_sizes`: the same of structs that BTF may not
    have. `enums`: their enumerators become macros. `symbols`: functions whose address it can use, as AT_<name>. `bits`:
    bit-fields of one bit, known from BTF only: the byte that holds them, and <name>__MASK.
    """

    members: tuple[Member, ...]
    tracepoints: dict[str, str]
    heads: dict[str, tuple[Member, ...]]
    sizes: tuple[str, ...] = ()
    private_sizes: tuple[str, ...] = ()
    enums: tuple[str, ...] = ()
    headers: tuple[str, ...] = ()  # for kernels without BTF
    symbols: tuple[str, ...] = ()
    bits: tuple[tuple[str, str], ...] = ()  # struct, member


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


def read_kernel(needs: Needs, tracepoints_to_ignore: frozenset[str] = frozenset()) -> Kernel:
    """Look at the running kernel; UnavailableError when neither BTF nor matching headers tell its structs.

    `tracepoints_to_ignore` makes a newer kernel look like an older one, which is how the older path is tested.
    """
    build, symbols = "", _keep_symbols(needs.symbols)
    if BTF_FILE.exists():
        build = _identify_build()
        facts = keep("facts", (build, repr(needs)), lambda: _read_facts(needs))
    else:
        _require_headers()
        points, lines = _list_tracepoints_by_symbol(needs), _define_members_by_header(needs)
        facts = {"lines": lines, "tracepoints": points, "probe_types": {}, "cast": 0, "preemption": None, "loop": None}
    points = {name: index for name, index in facts["tracepoints"].items() if name not in tracepoints_to_ignore}
    lines = [*facts["lines"], *(f"#define ARG_{name} {index}\n#define HAVE_{name} 1" for name, index in points.items())]
    lines += [f"#define AT_{name} 0x{address:x}ULL" for name, address in symbols.items()]
    preemption, loop = (facts[name] and tuple(facts[name]) for name in ("preemption", "loop"))
    types = facts["probe_types"], facts["cast"]
    return Kernel("\n".join(lines) + "\n", points, bool(build), *types, preemption, loop, build)


def _read_facts(needs: Needs) -> dict[str, Any]:
    """Return what BTF says: lines of C, and the fields of `Kernel`."""
    btf, *_ = btfs = _read_btf()
    argument_types = {name: btf.list_tracepoint_arguments(name) for name in needs.tracepoints}
    points = {
        name: types.index(needs.tracepoints[name]) if needs.tracepoints[name] else 0
        for name, types in argument_types.items()
        if types is not None and needs.tracepoints[name] in ("", *types)
    }
    lines = _define_members(btfs, needs)
    lines += [f"#define ARGS_{name} {len(types)}" for name, types in argument_types.items() if types is not None]
    off, on = btf.find_function("bpf_preempt_disable"), btf.find_function("bpf_preempt_enable")  # since 6.10
    loop = [btf.find_function(f"bpf_iter_num_{step}") for step in ("new", "next", "destroy")]  # since 6.4
    return {
        "lines": lines,
        "tracepoints": points,
        "probe_types": {name: btf.find_tracepoint(name) for name in points},
        "cast": btf.find_function("bpf_rdonly_cast"),  # since 6.2
        "preemption": (off, on) if off and on and _get_version() >= _PREEMPTIBLE_SINCE else None,
        "loop": loop if all(loop) else None,
    }


@lru_cache(maxsize=1)
def _read_types() -> list[bytes]:
    modules = [BTF_FILE.with_name(name) for name in _MODULES]
    return [path.read_bytes() for path in (BTF_FILE, *modules) if path.exists()]


@lru_cache(maxsize=1)
def _identify_build() -> str:
    """Return a text that no other build of a kernel has, nor the same one with another module."""
    return " ".join([*os.uname(), *(hashlib.sha256(types).hexdigest() for types in _read_types())])


@lru_cache(maxsize=1)
def _read_btf() -> tuple[Btf, ...]:
    """Return the types of the kernel, and with them those of each module."""
    kernel, *modules = _read_types()
    base = Btf(kernel)
    return base, *(Btf(module, base) for module in modules)


def _find_btf(btfs: Sequence[Btf], struct: str) -> Btf:
    """Return the types that a struct is among."""
    return next((btf for btf in btfs if btf.find_struct(struct)), btfs[0])


def _define_members(btfs: Sequence[Btf], needs: Needs) -> list[str]:
    btf, lines, ends = btfs[0], [], {}
    for member in needs.members:
        try:
            offset, size = _find_btf(btfs, member.struct).find_member(member.struct, member.path)
        except KeyError as missing:
            if member.is_optional:
                continue
            raise UnavailableError(f"this kernel has no {missing.args[0]}, which the probe reads") from missing
        if member.size and size != member.size:
            if member.is_optional:
                continue  # another thing of that name
            raise UnavailableError(
                f"{member.struct}.{member.path} has {size} bytes in this kernel, expected {member.size}"
            )
        lines.append(
            f"#define {member.name} {offset}\n#define {member.name}__SIZE {size}\n#define HAVE_{member.name} 1"
        )
        ends[member] = offset + size
    lines += [line for bit in needs.bits for line in _define_bit(btf, *bit)]
    for name, members in needs.heads.items():
        end = max(ends[member] for member in members if member in ends)
        lines.append(f"#define {name} {-end // 8 * -8}")
    lines += [f"#define {name}__END {btf.get_struct_size(name)}" for name in needs.sizes]
    homes = {name: _find_btf(btfs, name) for name in needs.private_sizes}
    lines += [
        f"#define {name}__END {home.get_struct_size(name)}" for name, home in homes.items() if home.find_struct(name)
    ]
    types = dict.fromkeys((*(member.struct for member in needs.members), *_WORDS))
    lines += [f"#define TYPE_{name} {btf.find_struct(name)}" for name in types]
    for enum in needs.enums:
        lines += [f"#define {name} {value}" for name, value in btf.list_enumerators(enum).items()]
    return lines


def _define_bit(btf: Btf, struct: str, member: str) -> list[str]:
    try:
        offset, mask = btf.find_bit(struct, member)
    except KeyError as missing:
        raise UnavailableError(f"this kernel has no {missing.args[0]}, which the probe reads") from missing
    return [f"#define {struct}__{member} {offset}\n#define {struct}__{member}__MASK {mask}"]


def _require_headers() -> None:
    release = os.uname().release
    stamp = Path("/lib/modules", release, "build/include/generated/utsrelease.h")
    if not stamp.exists() or f'"{release}"' not in stamp.read_text():
        raise UnavailableError(f"no {BTF_FILE} and no kernel headers of exactly {release} under /lib/modules")


def _define_members_by_header(needs: Needs) -> list[str]:
    lines = [f"#include <linux/{name}.h>" for name in needs.headers]
    for member in (member for member in needs.members if member.in_headers):
        lines += [f"#if {_get_condition(member)}"]
        lines += [f"#define {member.name} offsetof(struct {member.struct}, {member.path})"]
        lines += [f"#define {member.name}__SIZE {member.size}", f"#define HAVE_{member.name} 1", "#endif"]
    for name, members in needs.heads.items():
        end = "0"
        for member in (member for member in members if not member.is_optional):
            member_end = f"({member.name} + {member.size})"
            end = f"({member_end} > {end} ? {member_end} : {end})"
        lines.append(f"#define {name} (({end} + 7) / 8 * 8)")
    return [*lines, *(f"#define {name}__END sizeof(struct {name})" for name in needs.sizes)]


def _get_condition(member: Member) -> str:
    conditions = [f"LINUX_VERSION_CODE >= {_version_code(member.since)}"] if member.since else []
    conditions += [f"LINUX_VERSION_CODE < {_version_code(member.until)}"] if member.until else []
    return " && ".join(conditions) or "1"


def _version_code(version: str) -> str:
    return f"KERNEL_VERSION({version.replace('.', ',')},0)"


def _list_tracepoints_by_symbol(needs: Needs) -> dict[str, int]:
    symbols = _KALLSYMS.read_text()
    return {name: 0 for name in needs.tracepoints if f" __tracepoint_{name}\n" in symbols}  # comes first since 5.11


def _find_symbols(names: Collection[str]) -> dict[str, int]:
    """Return the addresses of kernel functions, as far as this kernel has them and shows them."""
    symbols = _KALLSYMS.read_text() if names else ""
    addresses = {}
    for name in names:
        line_end = re.search(rf" {name}[\t\n]", symbols)  # a tab comes before the name of a module
        if line_end is not None:
            line = symbols[symbols.rfind("\n", 0, line_end.start()) + 1 : line_end.start()]
            if address := int(line.split(maxsplit=1)[0], 16):
                addresses[name] = address
    return addresses


def _keep_symbols(names: Collection[str]) -> dict[str, int]:
    """Return the addresses, as they were found since the machine started and modules were loaded."""
    modules = (line.split() for line in _MODULES_LOADED.read_text().splitlines()) if _MODULES_LOADED.exists() else ()
    loaded = " ".join(f"{module[0]} {module[5]}" for module in modules)
    made_of = (_BOOT.read_text(), loaded, *names)
    addresses: dict[str, int] = keep("symbols", made_of, lambda: _find_symbols(names), is_kept=bool(names))
    return addresses


def _get_version() -> tuple[int, ...]:
    numbers = re.match(r"(\d+)\.(\d+)(?:\.(\d+))?", os.uname().release)
    if numbers is None:
        raise UnavailableError(f"cannot tell the kernel's version from {os.uname().release!r}")
    return tuple(int(number or 0) for number in numbers.groups())


@contextmanager
def _held_directory() -> Iterator[str]:
    """Yield a directory that is removed at the end, or by the next monitor when this one is killed before.

    A lock shows that its owner lives; a number of a process would not, since each namespace of them has its own.
    """
    for leftover in Path(tempfile.gettempdir()).glob(f"{_PREFIX}*"):
        with contextlib.suppress(OSError):  # its owner lives, or it is just being removed
            lock = os.open(leftover, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if os.fstat(lock).st_uid == os.geteuid():
                    shutil.rmtree(leftover)
            finally:
                os.close(lock)
    while True:
        directory = tempfile.mkdtemp(prefix=_PREFIX)
        with contextlib.suppress(FileNotFoundError):  # taken for abandoned before it was held
            lock = os.open(directory, os.O_RDONLY | os.O_DIRECTORY)
            fcntl.flock(lock, fcntl.LOCK_SH)
            if Path(directory).exists():
                break
            os.close(lock)
    try:
        yield directory
    finally:
        shutil.rmtree(directory)
        os.close(lock)


@contextmanager
def compile_environment(kernel: Kernel) -> Iterator[None]:
    """Point bcc to a directory of empty headers, all it needs when offsets come from BTF; removed afterwards."""
    if not kernel.has_btf:
        yield
        return
    with _held_directory() as directory:
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
