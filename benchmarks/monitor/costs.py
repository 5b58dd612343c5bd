"""What watching costs, as the kernel accounts it: time in BPF programs, and CPU time of the tool's own processes."""

from __future__ import annotations

import ctypes
import os
import platform
import re
import struct
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path

_BPF_SYSCALL = {"x86_64": 321, "aarch64": 280}
_ENABLE_STATS, _RUN_TIME = 32, 0  # a command of bpf(2) since 5.8, and what it enables
_TICKS_PER_S = os.sysconf("SC_CLK_TCK")


@dataclass
class Costs:
    """Of all processes that this one has started; filled when the block ends."""

    programs_ns: int = 0
    cpu_s: float = 0.0


@contextmanager
def count_costs(with_statistics: bool) -> Iterator[Costs]:
    """Account for what happens in the block; the kernel's statistics cost time themselves, so they are optional."""
    costs, tools = Costs(), list_descendants()
    with _statistics() if with_statistics else nullcontext():
        before, cpu_before = list_programs(tools), _read_cpu_s(tools)
        yield costs
        costs.cpu_s = _read_cpu_s(tools) - cpu_before
        costs.programs_ns = sum(time_ns - before.get(key, 0) for key, time_ns in list_programs(tools).items())


@contextmanager
def _statistics() -> Iterator[None]:
    """Let the kernel measure BPF programs, as long as a descriptor is open: nothing stays if we are killed."""
    attributes = ctypes.create_string_buffer(struct.pack("<I", _RUN_TIME))
    libc = ctypes.CDLL(None, use_errno=True)
    handle = libc.syscall(_BPF_SYSCALL[platform.machine()], _ENABLE_STATS, attributes, 4)
    if handle < 0:
        raise OSError(ctypes.get_errno(), "BPF_ENABLE_STATS: " + os.strerror(ctypes.get_errno()))
    try:
        yield
    finally:
        os.close(handle)


def list_descendants() -> list[int]:
    """Return the processes below this one."""
    pids, queue = [], [os.getpid()]
    while queue:
        pid = queue.pop()
        for task in Path("/proc", str(pid), "task").glob("*/children"):
            children = [int(word) for word in task.read_text().split()]
            pids += children
            queue += children
    return pids


def list_programs(pids: list[int]) -> dict[str, int]:
    """Return BPF program -> its time so far in ns, of the programs that processes hold (Documentation/bpf: fdinfo)."""
    programs = {}
    for pid in pids:
        for entry in Path("/proc", str(pid), "fdinfo").glob("*"):
            try:
                text = entry.read_text()
            except FileNotFoundError:
                continue  # closed while we looked
            facts = dict(re.findall(r"^(\w+):\s*(\w+)$", text, re.MULTILINE))
            if "prog_id" in facts and "run_time_ns" in facts:
                programs[facts["prog_id"]] = int(facts["run_time_ns"])
    return programs


def _read_cpu_s(pids: list[int]) -> float:
    ticks = 0
    for pid in pids:
        fields = Path("/proc", str(pid), "stat").read_text().rsplit(")", 1)[1].split()
        ticks += int(fields[11]) + int(fields[12])
    return ticks / _TICKS_PER_S
